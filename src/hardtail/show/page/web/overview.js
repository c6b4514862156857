// The first view: what was run, the study's tables next to the paper's, and the ledger of its claims.

import { chips, el, headline, plural, scrolling, shown, table } from "./dom.js";
import { addressOf } from "./address.js";
import { VERDICTS, ledgerSection } from "./ledger.js";

export function overviewView(content, query) {
  const judged = content.judged.find((choice) => choice.weights === query.get("weights")) ?? content.judged[0];
  const page = el("section", { class: "page" }, heading(content, judged?.ledger, query.get("weights")));
  page.append(content.runs.length ? runsTable(content.runs) : noRuns());
  if (!judged) return page;
  if (content.judged.some((choice) => measuredTables(choice).length)) {
    // The paper's tables use the weights with the best probe; the last weights often give other results.
    const link = (choice) => [addressOf("overview", { weights: choice.weights }), choice.weights, choice === judged];
    const tables = measuredTables(judged).map(studyTable);
    if (!tables.length) tables.push(el("p", { class: "empty", text: "Nothing is recorded for these weights." }));
    const links = chips("Weights", content.judged.map(link));
    page.append(headline("tables", "The study's tables", links), tablesKey(), ...tables);
  }
  page.append(...ledgerSection(judged.ledger, query));
  return page;
}

function measuredTables(judged) {
  return judged.tables.filter((table) => table.rows.some(([, cells]) => cells.some((cell) => cell.ours !== null)));
}

function heading(content, ledger, weights) {
  const total = (count) => content.stages.reduce((sum, stage) => sum + count(stage), 0);
  const held = ledger ? ledger.claims.filter((claim) => claim.verdict !== "not measured") : [];
  const facts = [
    [content.runs.length, "runs", "#overview"],
    [total((stage) => stage.decoders.length), "decoders to watch", "#theatre"],
    [total((stage) => stage.strata.length), "problems decoded", "#theatre"],
  ];
  if (ledger) {
    const address = addressOf("overview", { verdict: "measured", weights });
    facts.push([`${held.length}/${ledger.claims.length}`, "claims measured", address]);
  }
  const lede =
    "Masked diffusion models on reasoning tasks whose logical order is known exactly: what was trained, " +
    "how it decodes, and which commits came before their prerequisites.";
  const link = ([number, words, href]) =>
    el("a", { class: "fact", href }, el("b", { text: number.toLocaleString("en-GB") }), words);
  const theatre = el("a", { class: "action", href: "#theatre", text: "Open the decoder theatre" });
  return el(
    "header",
    { class: "hero" },
    el("h1", { text: "Where a decoder commits too early" }),
    el("p", { class: "lede", text: lede }),
    el("div", { class: "facts" }, ...facts.map(link)),
    content.stages.length ? el("p", {}, theatre) : null,
    el("p", { class: "note", text: `hardtail ${content.version}` }),
  );
}

function noRuns() {
  const text =
    "This page has no recorded runs. Runs that “hardtail study” trains and records are listed here, with the " +
    "study’s tables and the paper’s claims.";
  return el("p", { class: "empty", text });
}

function runsTable(runs) {
  const rows = runs.map((run) => [
    el("th", { scope: "row", text: run.name }),
    el("td", {}, el("a", { href: addressOf("curves", { task: run.task }), text: run.task })),
    el("td", { class: "number", text: run.seed }),
    el("td", { class: "number", text: shown(run.steps) }),
    el("td", { text: run.device ?? "–" }),
    el("td", { class: "number", text: duration(run.wall) }),
    el("td", { text: run.commit?.slice(0, 9) ?? "–" }),
  ]);
  return el(
    "details",
    { class: "card", open: runs.length <= 12 },
    el("summary", { text: plural(runs.length, "run") }),
    table(["run", "task", "seed", "steps", "device", "time", "commit"], rows),
  );
}

function duration(seconds) {
  if (typeof seconds !== "number") return "–";
  if (seconds < 90) return `${Math.round(seconds)} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

function tablesKey() {
  const entry = (verdict, words) =>
    el("span", { class: `agreement ${VERDICTS[verdict][0]}` }, `${VERDICTS[verdict][1]} ${words}`);
  return el(
    "p",
    { class: "key" },
    "Each cell shows our mean over seeds, its 95 % interval, and the paper's figure below. ",
    entry("holds", "agrees"),
    entry("holds weaker", "within 0.05, but the intervals do not overlap"),
    entry("does not hold", "differs"),
  );
}

function studyTable(held) {
  const column = (text) => el("th", { scope: "col", text });
  const group = (text) => el("th", { scope: "colgroup", colspan: held.columns.length, class: "group", text });
  const columns = held.groups.flatMap(() => held.columns.map(column));
  const head = el(
    "thead",
    {},
    el("tr", {}, el("td", {}), ...held.groups.map(group)),
    el("tr", {}, column(held.stub), ...columns),
  );
  const body = held.rows.map(([name, cells]) =>
    el("tr", {}, el("th", { scope: "row", text: name }), ...cells.map(studyCell)),
  );
  const notes = [`The paper's ${held.where}`];
  if (held.unlearned.length) notes.push(`Left out, because it has not learned the task: ${held.unlearned.join(", ")}`);
  return el(
    "figure",
    { class: "card" },
    el("figcaption", {}, el("h3", { text: held.title }), ...notes.map((text) => el("p", { class: "note", text }))),
    scrolling(el("table", { class: "study" }, head, el("tbody", {}, ...body))),
  );
}

function studyCell(cell) {
  const paper = el("span", { class: "paper", text: cell.paper === null ? "–" : cell.paper.toFixed(3) });
  if (cell.ours === null) return el("td", { class: "number unmeasured" }, el("b", { text: "–" }), paper);
  const [kind, sign, words] = VERDICTS[cell.agreement] ?? ["", "", ""];
  const interval = cell.low === null ? "" : `${cell.low.toFixed(3)}–${cell.high.toFixed(3)}`;
  return el(
    "td",
    { class: `number agreement ${kind}`, title: `${words}; ${plural(cell.seeds, "seed")}` },
    el("b", { text: `${cell.ours.toFixed(3)} ${sign}` }),
    el("span", { class: "interval", text: interval }),
    paper,
  );
}
