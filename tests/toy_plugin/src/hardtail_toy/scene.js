// A bit string and its running parity, one below the other.

import { el } from "hardtail/dom.js";
import { promptOf } from "hardtail/replay.js";
import { register } from "hardtail/scenes.js";
import { Scene, Tile } from "hardtail/tiles.js";

const SIZE = 34;

class ParityScene extends Scene {
  static legend(swatch) {
    return [...super.legend(swatch), el("span", { class: "parity-key", text: "1 flips the parity" })];
  }

  constructor(stage, problem) {
    super(stage.cells * SIZE, 3 * SIZE, 320);
    this.stacked = false;
    const bits = promptOf(stage, problem);
    for (let cell = 0; cell < stage.cells; cell++) {
      this.write((cell + 0.5) * SIZE, 0.7 * SIZE, bits[cell], "digit parity-bit", 18);
      this.add(new Tile(cell, cell * SIZE + 1, SIZE, SIZE - 2, SIZE));
    }
  }
}

register("parity", ParityScene);
