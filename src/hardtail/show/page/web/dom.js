// Elements. Text is always inserted as text, never as markup: names and problems come from data.

const SVG = "http://www.w3.org/2000/svg";

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "text") node.textContent = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

export function el(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

// A heading with links next to it.
export function headline(id, text, links) {
  return el("div", { class: "headline", id }, el("h2", { text }), links);
}

// A page that has nothing to show, and why.
export function emptyPage(title, reason) {
  return el("section", { class: "page" }, el("h1", { text: title }), el("p", { class: "empty", text: reason }));
}

// Links, each as `[address, text, current]`.
export function chips(label, links) {
  const entry = ([href, text, current]) => el("a", { href, "aria-current": current ? "true" : null, text });
  const words = el("span", { class: "note", "aria-hidden": "true", text: label });
  return el("nav", { class: "chips", "aria-label": label }, words, ...links.map(entry));
}

export function scrolling(node) {
  return el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Table, scrolls sideways" }, node);
}

// A table of cells that are elements.
export function table(columns, rows) {
  const head = el("tr", {}, ...columns.map((text) => el("th", { scope: "col", text })));
  const body = rows.map((cells) => el("tr", {}, ...cells));
  return scrolling(el("table", {}, el("thead", {}, head), el("tbody", {}, ...body)));
}

export function clamp(value, low, high) {
  return Math.min(Math.max(value, low), high);
}

// A number for display; whole numbers have digits in groups of three.
export function shown(value, digits = 3) {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number") return String(value);
  if (Number.isInteger(value) && Math.abs(value) >= 2) return value.toLocaleString("en-GB");
  return value !== 0 && Math.abs(value) < 0.001 ? value.toExponential(1) : value.toFixed(digits);
}

// A share in per cent; 100 % and 0 % only if it is exactly that.
export function percent(part, whole) {
  const share = (100 * part) / whole;
  if (part === 0 || part === whole) return `${share} %`;
  return `${Math.min(Math.max(share, 0.1), 99.9).toFixed(share < 1 || share > 99 ? 1 : 0)} %`;
}

// A probability without false zeros and ones.
export function probability(value) {
  if (value > 0.9999) return ">\u00a00.9999";
  if (value < 0.0001) return "<\u00a00.0001";
  return value.toFixed(value < 0.001 || value >= 0.9995 ? 4 : 3);
}

export function plural(count, word) {
  return `${count.toLocaleString("en-GB")} ${word}${count === 1 ? "" : "s"}`;
}

// Show the page's only tooltip next to the pointer and inside the window.
export function showTip(lines, x, y) {
  const tip = document.getElementById("tip");
  tip.replaceChildren(...lines);
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = x + 16 + box.width > innerWidth ? x - 16 - box.width : x + 16;
  tip.style.left = `${Math.max(8, left)}px`;
  tip.style.top = `${clamp(y - box.height / 2, 8, Math.max(8, innerHeight - box.height - 8))}px`;
}

export function hideTip() {
  document.getElementById("tip").hidden = true;
}
