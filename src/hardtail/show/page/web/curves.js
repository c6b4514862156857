// The view of plots: one task's decodes or runs at a time, a question a screen. One chooser says which arms and models all plots show.

import { chips, el, emptyPage, plural, svg } from "./dom.js";
import { addressOf } from "./address.js";
import { drawChart, markNode } from "./chart.js";
import { DASHES, markOf } from "./colours.js";

const QUESTIONS = {
  accuracy: "What is solved, and in which order?",
  cost: "What does a right answer cost?",
  readiness: "Does it commit before it can know?",
  coverage: "Which cells are hidden, in training and in decodes?",
  training: "How did training get there?",
};
const chosen = new Map(); // the groups and styles that are shown, by what the plots are of

export function curvesView(content, query) {
  const pages = [...new Set(content.charts.map((chart) => chart.of))];
  if (!pages.length)
    return emptyPage("Curves", "There is nothing to plot: this page has no recorded runs and no decodes.");
  const of = pages.includes(query.get("of")) ? query.get("of") : pages[0];
  const charts = content.charts.filter((chart) => chart.of === of);
  if (!chosen.has(of)) chosen.set(of, atFirst(charts));
  const links = pages.map((name) => [addressOf("curves", { of: name }), name, name === of]);
  const tabs = pages.length > 1 ? chips("Plots of", links) : null;
  const head = el("div", { class: "headline" }, el("h1", { text: "Curves" }), tabs);
  const body = el("div");
  const redraw = () => body.replaceChildren(...sections(charts, chosen.get(of), () => redraw()));
  redraw();
  return el("section", { class: "page curves" }, head, chooser(charts, chosen.get(of), redraw), body);
}

function all(charts, key) {
  return [...new Set(charts.flatMap((chart) => chart.series.map((one) => one[key])))];
}

function atFirst(charts) {
  const shown = charts.map((chart) => ({ series: chart.series.filter((one) => one.shown) }));
  return { groups: new Set(all(shown, "group")), styles: new Set(all(shown, "style")) };
}

// Boxes for every arm and model; folded while there are few enough to show them all.
function chooser(charts, state, redraw) {
  const groups = all(charts, "group");
  if (groups.length < 2) return null;
  const summary = el("summary");
  const count = () => (summary.textContent = `Showing ${state.groups.size} of ${groups.length} runs and models – choose`);
  const colour = new Map(charts.flatMap((chart) => chart.series.map((one) => [one.group, one.colour])));
  const boxes = groups.map((group) => {
    const change = () => {
      if (box.checked) state.groups.add(group);
      else state.groups.delete(group);
      count();
      redraw();
    };
    const box = el("input", { type: "checkbox", checked: state.groups.has(group), onchange: change });
    return el("label", {}, box, swatch(colour.get(group)), group);
  });
  count();
  return el("details", { class: "chooser card" }, summary, el("div", { class: "boxes-of" }, ...boxes));
}

function swatch(colour) {
  const mark = el("i", { class: "swatch" });
  mark.style.background = colour;
  return mark;
}

function sections(charts, state, redraw) {
  return Object.entries(QUESTIONS).flatMap(([section, question]) => {
    const held = charts.filter((chart) => chart.section === section);
    if (!held.length) return [];
    const styles = all(held, "style").filter(Boolean);
    const dash = new Map(styles.map((style, place) => [style, DASHES[place % DASHES.length]]));
    const mark = new Map(styles.map((style, place) => [style, section === "cost" ? markOf(place) : null]));
    const kept = (one) => state.groups.has(one.group) && (!one.style || state.styles.has(one.style));
    const look = (one) => ({ ...one, dash: dash.get(one.style) ?? "", mark: mark.get(one.style) ?? null });
    const chosenOf = held.map((chart) => ({ ...chart, series: chart.series.filter(kept).map(look) }));
    const drawn = chosenOf.filter((chart) => chart.series.length).map(drawChart);
    const parts = [el("h2", { text: question }), legend(held, kept, dash, mark, state, redraw)];
    const more = held.length - drawn.length;
    const note = more ? el("p", { class: "note rest", text: `${plural(more, "more plot")} ${more === 1 ? "shows" : "show"} nothing of what is chosen.` }) : null;
    return [el("section", { class: "question" }, ...parts, el("div", { class: "grid" }, ...drawn), note)];
  });
}

// One legend for all plots of a question: colours are arms and models, strokes or marks are orders.
function legend(charts, kept, dash, mark, state, redraw) {
  const series = charts.flatMap((chart) => chart.series.filter(kept));
  const colours = new Map(series.map((one) => [one.group, one.colour]));
  const seeds = series.some((one) => one.lines.length > 1 || one.seeds.length);
  const entries = [...colours].map(([group, colour]) => el("span", {}, swatch(colour), group));
  const strokes = dash.size < 2 ? [] : [...dash].map(([style, dashes]) => stroke(style, dashes, mark.get(style), state, redraw));
  const note = seeds ? [el("span", { class: "note", text: "a thin line or a small dot is one seed" })] : [];
  return el("div", { class: "legend" }, ...entries, ...strokes, ...note);
}

function stroke(style, dashes, mark, state, redraw) {
  const line = svg("line", { x1: 0, x2: 26, y1: 6, y2: 6, "stroke-width": 2.4, "stroke-dasharray": dashes });
  const drawn = mark ? markNode(mark, 6, 6) : line;
  const sample = svg("svg", { width: mark ? 12 : 26, height: 12, class: "stroke", "aria-hidden": "true" }, drawn);
  const change = () => {
    if (!state.styles.delete(style)) state.styles.add(style);
    redraw();
  };
  const pressed = String(state.styles.has(style));
  return el("button", { type: "button", "aria-pressed": pressed, onclick: change }, sample, style);
}
