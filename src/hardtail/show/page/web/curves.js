// The view of plots: one task at a time, section by section.

import { chips, el, emptyPage } from "./dom.js";
import { addressOf } from "./address.js";
import { drawChart } from "./chart.js";

const SECTIONS = {
  training: "Training",
  accuracy: "Accuracy by stratum and policy",
  readiness: "Readiness at commit",
  coverage: "Coverage of mask states",
};

export function curvesView(content, query) {
  const tasks = [...new Set(content.charts.map((chart) => chart.task))];
  if (!tasks.length)
    return emptyPage("Curves", "There is nothing to plot: this page has no recorded runs and no decodes.");
  const task = tasks.includes(query.get("task")) ? query.get("task") : tasks[0];
  const links = tasks.map((name) => [addressOf("curves", { task: name }), name, name === task]);
  const head = el("div", { class: "headline" }, el("h1", { text: "Curves" }), chips("Tasks", links));
  const page = el("section", { class: "page" }, head);
  for (const [section, title] of Object.entries(SECTIONS)) {
    const charts = content.charts.filter((chart) => chart.task === task && chart.section === section);
    if (!charts.length) continue;
    page.append(el("h2", { text: title }), el("div", { class: "grid" }, ...charts.map(drawChart)));
  }
  return page;
}
