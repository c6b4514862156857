// A ListOps expression as a tree: operators get their values as they are committed.

import { svg } from "hardtail/dom.js";
import { register } from "hardtail/scenes.js";
import { Scene, Tile } from "hardtail/tiles.js";
import { promptOf } from "hardtail/replay.js";

const LEAF = 22;
const NODE = 38;
const LEVEL = 66;
const NAMES = { X: "max", N: "min", D: "med", S: "sum" };

// The tree of an expression; operators are numbered as they close, which is the order of the answer's cells.
function treeOf(signs) {
  const stack = [{ children: [] }];
  let closed = 0;
  let fresh = false;
  for (const sign of signs) {
    if (sign === "[") {
      const node = { operator: "", children: [] };
      stack.at(-1).children.push(node);
      stack.push(node);
      fresh = true;
    } else if (sign === "]") {
      stack.pop().cell = closed++;
    } else if (fresh) {
      stack.at(-1).operator = sign;
      fresh = false;
    } else if (sign >= "0" && sign <= "9") stack.at(-1).children.push({ digit: sign });
  }
  return { root: stack[0].children[0], operators: closed };
}

function placed(node, depth, cursor) {
  node.depth = depth;
  if (node.digit !== undefined) {
    node.x = cursor.at + LEAF / 2;
    cursor.at += LEAF;
    return;
  }
  const start = cursor.at;
  for (const child of node.children) placed(child, depth + 1, cursor);
  cursor.at = Math.max(cursor.at, start + NODE + 6);
  const [first, last] = [node.children[0], node.children.at(-1)];
  node.x = first ? (first.x + last.x) / 2 : start + NODE / 2;
  cursor.deepest = Math.max(cursor.deepest, depth);
}

class ListOpsScene extends Scene {
  constructor(stage, problem) {
    const { root, operators } = treeOf(promptOf(stage, problem));
    const cursor = { at: 12, deepest: 0 };
    placed(root, 0, cursor);
    const tail = stage.cells - operators;
    const high = (cursor.deepest + 2) * LEVEL + 34;
    const wide = Math.max(cursor.at + 12, 24 + tail * 21, 260);
    super(wide, high, Math.min(440, wide));
    this.stacked = !this.square;
    this.draw(root);
    if (tail) this.write(12, high - 36, "after the trace: end mark and padding", "stub", 11);
    for (let place = 0; place < tail; place++)
      this.add(new Tile(operators + place, 12 + place * 21, high - 28, 19, 24, true));
  }

  draw(node) {
    const y = 30 + node.depth * LEVEL;
    for (const child of node.children) {
      const low = 30 + child.depth * LEVEL + (child.digit === undefined ? 0 : -12);
      this.node.append(
        svg("path", {
          d: `M${node.x} ${y + NODE}C${node.x} ${y + LEVEL - 18} ${child.x} ${low - 20} ${child.x} ${low}`,
          class: "branch",
        }),
      );
    }
    this.write(node.x - NODE / 2, y - 5, NAMES[node.operator] ?? node.operator, "operator", 13);
    this.add(new Tile(node.cell, node.x - NODE / 2, y, NODE, NODE));
    for (const child of node.children) {
      if (child.digit === undefined) this.draw(child);
      else this.write(child.x, 30 + child.depth * LEVEL + 6, child.digit, "digit", 18);
    }
  }
}

register("listops", ListOpsScene);
