// Which drawing a task has on the stage. A task's own scene.js registers it by the task's name.

import { Scene, Tile } from "./tiles.js";
import { promptOf } from "./replay.js";

const ROW = 740; // as wide as 24 cells of one character
const HIGH = 40;
const LETTER = 12; // of the prompt
const LINE = 26;

// The drawing of a task without its own: its prompt as text, its answer as rows of cells as wide as its words.
class PlainScene extends Scene {
  constructor(stage, problem) {
    const longest = Math.min(Math.max(...stage.signs.map((sign) => sign.length)), 10);
    const cell = longest === 1 ? 30 : 18 + LETTER * longest;
    const row = innerWidth < 760 ? ROW / 2 : ROW;
    const across = Math.min(Math.floor(row / cell), stage.cells);
    const lines = folded(promptOf(stage, problem).join(longest === 1 ? "" : " "), Math.floor(row / LETTER));
    const top = 12 + lines.length * LINE;
    const high = top + Math.ceil(stage.cells / across) * (HIGH + 6) + 4;
    const wide = 20 + Math.max(across * cell, ...lines.map((line) => line.length * LETTER));
    super(wide, high, Math.min(wide, 300));
    this.node.style.maxWidth = `${wide}px`;
    this.stacked = false;
    if (high > row) this.grow();
    lines.forEach((line, number) => this.write(10, 24 + number * LINE, line, "prompt", 20));
    for (let at = 0; at < stage.cells; at++) {
      const [down, right] = [Math.floor(at / across), at % across];
      this.add(new Tile(at, 10 + right * cell, top + down * (HIGH + 6), cell - 3, HIGH));
    }
  }
}

// A text in lines of at most `most` characters, broken at spaces where there are any.
function folded(text, most) {
  const line = new RegExp(`.{1,${most}}(?:\\s|$)|.{1,${most}}`, "gu");
  return text.split("\n").flatMap((one) => one.match(line) ?? [""]);
}

const registered = new Map();

export function register(task, scene) {
  registered.set(task, scene);
}

export function sceneOf(task) {
  return registered.get(task) ?? PlainScene;
}
