// What all drawings share: a tile shows one answer cell, and a scene is a picture made of cells.

import { svg } from "./dom.js";
import { stepColour } from "./colours.js";

export class Tile {
  constructor(cell, x, y, wide, high, small = false) {
    this.box = svg("rect", { x, y, width: wide, height: high, rx: 4, class: "box" });
    this.size = small ? high * 0.5 : high * 0.58;
    this.sign = svg("text", { x: x + wide / 2, y: y + high * 0.48, class: "sign" });
    this.bar = svg("rect", { x: x + 3, y: y + high - 5, width: 0, height: 3, class: "sure" });
    this.room = wide - 6;
    const side = Math.min(wide, high) * 0.34;
    const corner = `M${x + wide} ${y}h${-side}l${side} ${side}z`;
    this.flag = svg("path", { d: corner, class: "flag" });
    this.old = svg("text", { x: x + 3, y: y + high * 0.3, class: "old", "font-size": Math.max(8, high * 0.3) });
    const parts = [this.box, this.sign, this.bar, this.flag, this.old];
    this.node = svg("g", { class: "tile hidden", "data-cell": cell }, ...parts);
    this.key = "";
  }

  paint(look) {
    const key = `${look.token}|${look.hidden}|${look.now}|${look.event}`;
    if (key === this.key) return;
    this.key = key;
    const kind = look.given ? "given" : look.hidden ? "hidden" : look.wrong ? "wrong" : "right";
    const classes = ["tile", kind, look.now && "now", look.unready && "unready", !look.meant && "filler"];
    if (look.replaced) classes.push("replaced");
    this.node.setAttribute("class", classes.filter(Boolean).join(" "));
    this.sign.textContent = look.given || !look.hidden ? look.sign : "";
    const room = this.room / (0.62 * Math.max(look.sign.length, 1)); // for each character of a monospaced word
    this.sign.setAttribute("font-size", Math.min(this.size, room).toFixed(1));
    this.old.textContent = look.replaced ?? ""; // what stood here before
    const colour = kind === "right" ? stepColour(look.part) : null;
    this.box.style.fill = colour ? colour.fill : "";
    this.node.style.color = colour ? colour.ink : ""; // of everything that is written on it
    this.bar.setAttribute("width", look.hidden || look.given ? 0 : (this.room * look.prob).toFixed(1));
  }
}

export class Scene {
  // What the colours mean, as entries that `swatch(kind, words)` makes.
  static legend(swatch) {
    return [swatch("key-ramp", "first to last commit"), swatch("key-wrong", "wrong"), swatch("key-bar", "probability")];
  }

  // How it marks a commit that came before its prerequisites.
  static get flag() {
    return "key-flag";
  }

  constructor(wide, high, least) {
    this.node = svg("svg", { class: "scene", viewBox: `0 0 ${wide} ${high}`, role: "img" });
    this.node.style.minWidth = `${least}px`;
    this.node.style.maxWidth = `${Math.round(wide * 1.5)}px`;
    this.square = wide < 2.2 * high; // then it is as high as the window leaves room for
    if (this.square) this.node.classList.add("square");
    this.tiles = [];
    this.marked = [];
  }

  // Not to be made to fit: its frame scrolls.
  grow() {
    this.square = false;
    this.node.classList.remove("square");
    this.node.classList.add("long");
  }

  add(tile) {
    this.tiles[tile.node.dataset.cell] = tile;
    this.node.append(tile.node);
  }

  write(x, y, text, kind, size = 14) {
    const node = svg("text", { x, y, class: kind, "font-size": size, text });
    this.node.append(node);
    return node;
  }

  paint(looks) {
    for (const look of looks) this.tiles[look.cell]?.paint(look);
  }

  // Outline one cell and those it waits for.
  mark(cell, parents) {
    for (const node of this.marked) node.classList.remove("inspected", "parent");
    this.marked = [];
    const outline = (which, kind) => {
      const node = this.tiles[which]?.node;
      if (!node) return;
      node.classList.add(kind);
      node.parentNode.append(node); // on top, so that no neighbour covers its outline
      this.marked.push(node);
    };
    for (const parent of parents) outline(parent, "parent");
    if (cell !== null) outline(cell, "inspected");
  }
}
