// A Sudoku board; the small number in a blank cell is the technique level that it takes.

import { el, svg } from "hardtail/dom.js";
import { register } from "hardtail/scenes.js";
import { Scene, Tile } from "hardtail/tiles.js";
import { roleOf } from "hardtail/replay.js";

const SIZE = 46;

class SudokuScene extends Scene {
  static legend(swatch) {
    return [...super.legend(swatch), el("span", {}, el("b", { text: "0–4 " }), "technique level, singles to search")];
  }

  constructor(stage, problem) {
    super(9 * SIZE + 8, 9 * SIZE + 8, 300);
    this.stacked = false;
    this.node.style.maxWidth = "560px";
    for (let cell = 0; cell < 81; cell++) {
      const [x, y] = [4 + (cell % 9) * SIZE, 4 + Math.floor(cell / 9) * SIZE];
      const tile = new Tile(cell, x + 1.5, y + 1.5, SIZE - 3, SIZE - 3);
      const level = roleOf(stage, problem, cell);
      if (level)
        tile.node.append(
          svg("text", { x: x + 5, y: y + 13, class: "level", "font-size": 11, text: level.replace("TL", "") }),
        );
      this.add(tile);
    }
    const lines = svg("g", { class: "boxes" });
    for (const line of [0, 3, 6, 9]) {
      const at = 4 + line * SIZE;
      lines.append(svg("path", { d: `M${at} 4V${4 + 9 * SIZE}M4 ${at}H${4 + 9 * SIZE}` }));
    }
    this.node.append(lines);
  }
}

register("sudoku", SudokuScene);
