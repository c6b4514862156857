// Addition in columns: operands, roles, the sum being written, and the longest carry chain.

import { el, svg } from "hardtail/dom.js";
import { register } from "hardtail/scenes.js";
import { Scene, Tile } from "hardtail/tiles.js";
import { promptOf, roleOf } from "hardtail/replay.js";

const WIDTH = 27;
const HEIGHT = 30;
const EDGE = 50;
const ROWS = { carry: 14, a: 36, b: 60, sum: 90, gold: 119, role: 137 };

const ROLES = { g: "makes a carry", p: "passes one on", k: "stops it", c: "the last carry" };

class AdditionScene extends Scene {
  static legend(swatch) {
    const roles = Object.entries(ROLES).map(([sign, words]) =>
      el("span", {}, el("b", { class: `role-sign role-${sign}`, text: sign }), words),
    );
    return [...super.legend(swatch), ...roles];
  }

  constructor(stage, problem) {
    const cells = stage.cells;
    super(EDGE + cells * WIDTH + 8, 164, Math.min(720, cells * 21 + 60));
    this.stacked = cells > 16;
    const prompt = promptOf(stage, problem);
    const digits = cells - 1;
    const at = (cell) => EDGE + cell * WIDTH;
    const middle = (cell) => at(cell) + WIDTH / 2;
    this.chain(stage, problem, at);
    Object.entries(ROWS).forEach(([name, y]) => this.write(6, y, name, "stub", 13));
    for (let place = 0; place < digits; place++) {
      this.write(middle(place + 1), ROWS.a, prompt[place], "digit", 20);
      this.write(middle(place + 1), ROWS.b, prompt[digits + 1 + place], "digit", 20);
    }
    this.node.append(svg("line", { x1: EDGE, x2: EDGE + cells * WIDTH, y1: 67, y2: 67, class: "rule" }));
    this.gold = [];
    const carries = stage.notes.carry_in_NA;
    for (let cell = 0; cell < cells; cell++) {
      if (carries?.[problem * cells + cell]) this.write(middle(cell), ROWS.carry, "1", "carry", 13);
      const role = roleOf(stage, problem, cell);
      this.write(
        middle(cell),
        ROWS.role,
        role === "carry out" ? "c" : role.slice(0, 1),
        `role role-${role.slice(0, 1)}`,
        15,
      );
      this.add(new Tile(cell, at(cell) + 1.5, 72, WIDTH - 3, HEIGHT));
      this.gold.push(this.write(middle(cell), ROWS.gold, "", "gold", 15));
    }
  }

  // The longest run of p, and the cell above it that has to wait for all of it.
  chain(stage, problem, at) {
    const length = stage.axes.chain?.[problem] ?? 0;
    const top = stage.notes.chain_msb_N?.[problem] ?? -1;
    if (!length || top < 0) return;
    const [left, right] = [at(top + 1), at(top + 1 + length)];
    this.node.append(svg("rect", { x: left, y: 19, width: right - left, height: 124, rx: 6, class: "chain" }));
    this.node.append(svg("path", { d: `M${left + 2} 144v5H${right - 2}v-5`, class: "bracket" }));
    this.node.append(svg("path", { d: `M${at(top) + WIDTH / 2} 144v5`, class: "bracket" }));
    const words = length > 5 ? `chain of ${length}` : `${length}`;
    this.write((left + right) / 2, 161, words, "caption", 12);
    this.write(at(top) + WIDTH / 2, 161, "waits", "caption", 12);
  }

  paint(looks) {
    super.paint(looks);
    for (const look of looks) this.gold[look.cell].textContent = look.wrong ? look.goldSign : "";
  }
}

register("addition", AdditionScene);
