// A maze that fills in: path, ways off it, and wrong commits as diagonal halves.

import { svg } from "hardtail/dom.js";
import { register } from "hardtail/scenes.js";
import { Scene } from "hardtail/tiles.js";
import { promptOf } from "hardtail/replay.js";

const SIZE = 20;

class MazeCell {
  constructor(cell, x, y, sign) {
    this.base = svg("rect", { x, y, width: SIZE, height: SIZE, class: "ground" });
    this.half = svg("path", { d: `M${x} ${y + SIZE}V${y}H${x + SIZE}z`, class: "half" });
    this.flag = svg("circle", { cx: x + SIZE - 4.5, cy: y + SIZE - 4.5, r: 2.6, class: "flag" });
    this.edge = svg("rect", { x: x + 1, y: y + 1, width: SIZE - 2, height: SIZE - 2, class: "edge" });
    this.node = svg("g", { class: "room", "data-cell": cell }, this.base, this.half, this.flag, this.edge);
    if (sign === "S" || sign === "E") {
      this.node.append(svg("circle", { cx: x + SIZE / 2, cy: y + SIZE / 2, r: SIZE * 0.42, class: "end" }));
      this.node.append(
        svg("text", { x: x + SIZE / 2, y: y + SIZE / 2, class: "end-sign", "font-size": 11, text: sign }),
      );
    }
    this.key = "";
  }

  paint(look) {
    const key = `${look.token}|${look.now}|${look.event}`;
    if (key === this.key) return;
    this.key = key;
    const meaning = { "#": "wall", 0: "off", 1: "on", S: "on", E: "on" };
    const shown = meaning[look.wrong ? look.goldSign : look.sign] ?? "off";
    const ground = look.hidden ? "unknown" : shown;
    const error = look.wrong ? ({ 0: " removes", 1: " adds" }[look.sign] ?? " strange") : "";
    const marks = `${look.now ? " now" : ""}${look.unready ? " unready" : ""}${look.replaced ? " replaced" : ""}`;
    this.node.setAttribute("class", `room ${ground}${error}${marks}`);
    this.base.style.fillOpacity = ground === "on" && look.prob ? String(0.55 + 0.45 * look.prob) : "";
  }
}

class MazeScene extends Scene {
  static legend(swatch) {
    return [
      swatch("key-unknown", "hidden"),
      swatch("key-on", "on the path"),
      swatch("key-off", "off it"),
      swatch("key-adds", "wrongly on"),
      swatch("key-removes", "wrongly off"),
      swatch("key-strange", "another token"),
    ];
  }

  static get flag() {
    return "key-dot";
  }

  constructor(stage, problem) {
    const side = Math.round(Math.sqrt(stage.cells));
    super(side * SIZE, side * SIZE, 260);
    this.node.style.maxWidth = "560px";
    const prompt = promptOf(stage, problem);
    for (let cell = 0; cell < stage.cells; cell++) {
      this.add(new MazeCell(cell, (cell % side) * SIZE, Math.floor(cell / side) * SIZE, prompt[cell]));
    }
  }
}

register("maze", MazeScene);
