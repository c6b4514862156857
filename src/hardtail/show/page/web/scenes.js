// Which drawing a task has on the stage. A task's own scene.js registers it by the task's name.

import { Scene, Tile } from "./tiles.js";
import { promptOf } from "./replay.js";

const WIDTH = 30;
const HEIGHT = 40;
const ACROSS = 24;

// The drawing of a task without its own: its prompt as text, its answer as rows of cells.
class PlainScene extends Scene {
  constructor(stage, problem) {
    const prompt = promptOf(stage, problem).join("");
    const lines = prompt.match(/.{1,60}/gsu) ?? [""];
    const rows = Math.ceil(stage.cells / ACROSS);
    super(40 + Math.min(stage.cells, ACROSS) * WIDTH + 320, 24 + lines.length * 22 + rows * (HEIGHT + 6), 360);
    this.stacked = false;
    lines.forEach((line, number) => this.write(10, 24 + number * 22, line, "prompt", 16));
    const top = 14 + lines.length * 22;
    for (let cell = 0; cell < stage.cells; cell++) {
      const [row, column] = [Math.floor(cell / ACROSS), cell % ACROSS];
      this.add(new Tile(cell, 10 + column * WIDTH, top + row * (HEIGHT + 6), WIDTH - 3, HEIGHT));
    }
  }
}

const registered = new Map();

export function register(task, scene) {
  registered.set(task, scene);
}

export function sceneOf(task) {
  return registered.get(task) ?? PlainScene;
}
