// A line chart: hovering or touching shows numbers. Its series come with their colours and dashes.

import { clamp, el, hideTip, showTip, shown, svg } from "./dom.js";

const WIDE = 430;
const NARROW = 350; // on a phone, so that text keeps its size
const HIGH = 216;
const ROOM = { left: 60, right: 14, top: 10, bottom: 44 };

export function drawChart(given) {
  const chart = { ...given, wide: innerWidth < 760 ? NARROW : WIDE };
  const viewBox = `0 0 ${chart.wide} ${HIGH}`;
  const plot = svg("svg", { class: "plot", viewBox, role: "img", "aria-label": chart.title });
  drawPlot(plot, chart, chart.series);
  return el(
    "figure",
    { class: "card chart", "data-chart": chart.title },
    el("figcaption", {}, what(chart), el("h3", { text: chart.answer })),
    plot,
  );
}

// The plot's name, which opens to say what is counted.
function what({ title, note }) {
  if (!note) return el("p", { class: "what", text: title });
  return el("details", { class: "what" }, el("summary", { text: title }), el("p", { class: "note", text: note }));
}

function drawPlot(plot, chart, visible) {
  const points = visible.flatMap((one) => one.lines.flatMap((line) => line.points));
  const x = scaleOf(chart.x, points, 0, ROOM.left, chart.wide - ROOM.right);
  const y = scaleOf(chart.y, points, 1, HIGH - ROOM.bottom, ROOM.top);
  plot.replaceChildren(axes(chart, x, y));
  // The marks of a category are next to each other, and apart from those of the next one.
  const apart = chart.marks && chart.x.categories ? Math.min(9, Math.min(60, 0.75 * x.step) / visible.length) : 0;
  visible.forEach((one, place) => {
    plot.append(drawSeries(one, chart, x, y, (place - (visible.length - 1) / 2) * apart));
  });
  const cursor = svg("line", { class: "cursor", y1: ROOM.top, y2: HIGH - ROOM.bottom, visibility: "hidden" });
  plot.append(cursor);
  plot.onpointermove = plot.onpointerdown = (event) => hover(event, plot, chart, visible, x, cursor);
  plot.onpointerleave = () => {
    cursor.setAttribute("visibility", "hidden");
    hideTip();
  };
}

function drawSeries(one, chart, x, y, spread) {
  const group = svg("g", { stroke: one.colour, color: one.colour, fill: "none", "stroke-linejoin": "round" });
  const strong = one.lines.length > 1 ? 1.2 : 2;
  for (const line of one.lines) {
    const kept = line.points.filter((point) => y.holds(point[1]));
    const next = (i) => i > 0 && !(chart.x.categories && kept[i][0] - kept[i - 1][0] > 1); // a stratum was left out
    const path = kept.map(
      (point, i) => `${next(i) ? "L" : "M"}${(x.at(point[0]) + spread).toFixed(1)} ${y.at(point[1]).toFixed(1)}`,
    );
    // Strata are steps of difficulty; other categories have no order that a line could follow.
    if (!chart.marks || chart.section === "accuracy")
      group.append(svg("path", { d: path.join(""), "stroke-width": strong, "stroke-dasharray": one.dash }));
    if (!chart.marks) continue;
    for (const point of kept) {
      const [px, py] = [x.at(point[0]) + spread, y.at(point[1])];
      if (point[2] !== null && point[3] !== null) {
        const whisker = { x1: px, x2: px, y1: y.at(point[2]), y2: y.at(point[3]), "stroke-width": 1.6 };
        group.append(svg("line", whisker));
      }
      if (one.mark) group.append(markNode(one.mark, px, py));
      else group.append(svg("circle", { cx: px, cy: py, r: 3.4, fill: one.colour, stroke: "none" }));
    }
  }
  for (const point of one.seeds.flatMap((line) => line.points))
    group.append(svg("circle", { cx: x.at(point[0]) + spread, cy: y.at(point[1]), r: 1.9, class: "seed" }));
  return group;
}

// The mark of a style, in the colour of the stroke around it.
export function markNode({ path, open }, x, y) {
  const kind = open ? "mark open" : "mark";
  return svg("path", { d: path, transform: `translate(${x} ${y})`, class: kind });
}

function scaleOf(axis, points, column, from, to) {
  if (axis.categories) {
    const step = (to - from) / axis.categories.length;
    return {
      step,
      at: (value) => from + (value + 0.5) * step,
      ticks: axis.categories.map((name, place) => [place, name]),
      holds: () => true,
    };
  }
  const values = points.map((point) => point[column]).filter((value) => !axis.log || value > 0);
  let low = axis.low ?? Math.min(...values);
  let high = axis.high ?? Math.max(...values);
  if (!values.length) [low, high] = axis.log ? [0.001, 1] : [axis.low ?? 0, axis.high ?? 1];
  if (axis.log) return logScale(low, high, from, to);
  if (high <= low) high = low + 1;
  const ticks = tidyTicks(low, high);
  if (axis.high === null) high = Math.max(high, ticks.at(-1));
  const at = (value) => from + ((value - low) / (high - low)) * (to - from);
  return { at, ticks: ticks.map((tick) => [tick, tidy(tick)]), holds: () => true };
}

function logScale(low, high, from, to) {
  const first = Math.floor(Math.log10(low));
  const last = Math.max(Math.ceil(Math.log10(high)), first + 1);
  const every = Math.ceil((last - first) / 6);
  const ticks = [];
  for (let power = first; power <= last; power += every)
    ticks.push([10 ** power, power < -3 ? `1e${power}` : String(+(10 ** power).toFixed(3))]);
  const at = (value) => from + ((Math.log10(value) - first) / (last - first)) * (to - from);
  return { at, ticks, holds: (value) => value > 0 };
}

function tidyTicks(low, high) {
  const rough = (high - low) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.999);
  const ticks = [];
  for (let tick = Math.ceil(low / step - 1e-9) * step; tick <= high + step * 1e-6; tick += step) ticks.push(tick);
  return ticks;
}

function tidy(value) {
  if (Math.abs(value) >= 10_000) return `${+(value / 1000).toFixed(1)}k`;
  return String(+value.toFixed(3));
}

function axes(chart, x, y) {
  const group = svg("g", { class: "axes" });
  const [left, right, bottom] = [ROOM.left, chart.wide - ROOM.right, HIGH - ROOM.bottom];
  const rule = (y, kind) => group.append(svg("line", { x1: left, x2: right, y1: y, y2: y, class: kind }));
  const write = (x, y, text, more = {}) => group.append(svg("text", { x, y, "text-anchor": "middle", text, ...more }));
  for (const [value, label] of y.ticks) {
    rule(y.at(value), "rule");
    write(left - 8, y.at(value) + 4, label, { "text-anchor": "end" });
  }
  // Names that would touch are written on two levels, shorter where all of them begin alike.
  const names = chart.x.categories ? shortened(x.ticks.map(([, label]) => label)) : x.ticks.map(([, label]) => label);
  const crowded = chart.x.categories && names.join("").length * 7.2 > right - left - 12 * names.length;
  x.ticks.forEach(([value], place) => write(x.at(value), bottom + (crowded && place % 2 ? 28 : 16), names[place]));
  rule(bottom, "base");
  write((left + right) / 2, HIGH - 4, chart.x.label, { class: "label" });
  const middle = (ROOM.top + bottom) / 2;
  write(12, middle, chart.y.label, { class: "label", transform: `rotate(-90 12 ${middle})` });
  return group;
}

// `chain>=4`, `chain>=8` … as `≥ 4`, `≥ 8` …, and `tier=easy`, `tier=hard` … as `easy`, `hard` …
function shortened(names) {
  const startOf = (name) => name.match(/^[^<>=,]+(?=>=\d+$|=[a-z]\w*$)/)?.[0] ?? "";
  const same = (start) => start && names.filter((name) => startOf(name) === start).length > 2;
  const plain = (name) => (same(startOf(name)) ? name.slice(startOf(name).length).replace(/^=/, "") : name);
  return names.map((name) => plain(name).replaceAll(">=", " ≥ ").replaceAll("_", " ").trim());
}

function hover(event, plot, chart, visible, x, cursor) {
  const box = plot.getBoundingClientRect();
  const at = ((event.clientX - box.left) / box.width) * chart.wide;
  const places = visible.flatMap((one) => one.lines.flatMap((line) => line.points.map((point) => point[0])));
  if (!places.length) return;
  const distance = (place) => Math.abs(x.at(place) - at);
  const nearest = places.reduce((best, place) => (distance(place) < distance(best) ? place : best));
  for (const end of ["x1", "x2"]) cursor.setAttribute(end, clamp(x.at(nearest), ROOM.left, chart.wide));
  cursor.setAttribute("visibility", "visible");
  const title = chart.x.categories ? chart.x.categories[nearest] : `${chart.x.label} ${shown(nearest)}`;
  const lines = [el("b", { text: title })];
  for (const one of visible) {
    for (const line of one.lines) {
      const point = line.points.find((candidate) => candidate[0] === nearest);
      if (!point) continue;
      const interval = point[2] !== null ? ` [${shown(point[2])}, ${shown(point[3])}]` : "";
      const swatch = el("i", { class: "swatch" });
      swatch.style.background = one.colour;
      const name = line.label && one.lines.length > 1 ? `${one.name}, ${line.label}` : one.name;
      lines.push(el("div", {}, swatch, `${name}  `, el("b", { text: shown(point[1]) }), interval));
    }
  }
  showTip(lines.slice(0, 16), event.clientX, event.clientY);
}
