// Countdown: the numbers and the target, then the equations, with line breaks where the gold chain has commas.

import { svg } from "hardtail/dom.js";
import { register } from "hardtail/scenes.js";
import { Scene, Tile } from "hardtail/tiles.js";
import { promptOf } from "hardtail/replay.js";

const WIDTH = 31;
const HEIGHT = 40;

class CountdownScene extends Scene {
  constructor(stage, problem, gold) {
    const numbers = promptOf(stage, problem).join("").slice(0, -1).split(",");
    const lines = linesOf(stage, gold);
    const longest = Math.max(...lines.map((line) => line.length), 12);
    super(
      90 + Math.min(longest, 20) * WIDTH,
      78 + lines.reduce((sum, line) => sum + Math.ceil(line.length / 20), 0) * (HEIGHT + 14),
      420,
    );
    this.chips(numbers);
    let y = 70;
    lines.forEach((line, number) => {
      const chain = number < lines.length - 1 || !line.tail;
      this.write(8, y + HEIGHT * 0.6, chain ? `step ${number + 1}` : "end", "stub", 13);
      line.forEach((cell, place) => {
        const [row, column] = [Math.floor(place / 20), place % 20];
        this.add(new Tile(cell, 62 + column * WIDTH, y + row * (HEIGHT + 4), WIDTH - 3, HEIGHT, !chain));
      });
      y += Math.ceil(line.length / 20) * (HEIGHT + 4) + 10;
    });
  }

  chips(numbers) {
    const target = numbers.pop();
    numbers.forEach((number, place) => {
      this.node.append(svg("rect", { x: 62 + place * 58, y: 10, width: 50, height: 36, rx: 18, class: "chip" }));
      this.write(87 + place * 58, 34, number, "digit", 19);
    });
    const x = 62 + numbers.length * 58;
    this.write(x + 14, 34, "→", "digit", 20);
    this.node.append(svg("rect", { x: x + 32, y: 10, width: 62, height: 36, rx: 8, class: "chip goal" }));
    this.write(x + 63, 34, target, "digit", 20);
  }
}

// Cells by equation of the gold chain; the last line is what comes after the chain.
function linesOf(stage, gold) {
  const lines = [[]];
  let tail = false;
  gold.forEach((token, cell) => {
    const sign = stage.signs[token];
    if (sign === "$" && !tail) {
      tail = true;
      lines.push(Object.assign([], { tail: true }));
    }
    lines.at(-1).push(cell);
    if (sign === "," && !tail) lines.push([]);
  });
  return lines.filter((line) => line.length);
}

register("countdown", CountdownScene);
