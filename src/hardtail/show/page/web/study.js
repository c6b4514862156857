// The study: its tables next to the paper's, the ledger of its claims, and the recorded runs.

import { chips, el, emptyPage, headline, plural, scrolling, shown, table } from "./dom.js";
import { addressOf } from "./address.js";
import { VERDICTS, ledgerSection } from "./ledger.js";

export function studyView(content, query) {
  if (!content.study)
    return emptyPage("The study", "This page was made without the recorded runs. hardtail report --study shows them.");
  const { runs, judged: choices } = content.study;
  const judged = choices.find((choice) => choice.weights === query.get("weights")) ?? choices[0];
  const lede = "The runs that this project recorded, next to the figures and claims of the paper that they repeat: The Confidence Shortcut (Kim & No, 2026).";
  const head = el("header", { class: "hero" }, el("h1", { text: "The study" }), el("p", { class: "lede", text: lede }));
  const page = el("section", { class: "page" }, head, ...counted(judged.ledger, query.get("weights")));
  if (choices.some((choice) => measuredTables(choice).length)) {
    // The paper's tables use the weights with the best probe; the last weights often give other results.
    const link = (choice) => [addressOf("study", { weights: choice.weights }), choice.weights, choice === judged];
    const tables = measuredTables(judged).map(studyTable);
    if (!tables.length) tables.push(el("p", { class: "empty", text: "Nothing is recorded for these weights." }));
    const links = chips("Weights", choices.map(link));
    page.append(headline("tables", "The study's tables", links), tablesKey(), ...tables);
  }
  page.append(...ledgerSection(judged.ledger, query), el("h2", { id: "runs", text: "Recorded runs" }), runsTable(runs));
  head.after(contents(page, query));
  return page;
}

// Links to the parts of the page, which is dozens of screens long on a phone.
function contents(page, query) {
  const link = (id, text) => {
    const href = addressOf("study", { part: id, verdict: query.get("verdict"), weights: query.get("weights") });
    // The address stays the same when a link is followed twice, so it alone would not scroll.
    return el("a", { href, text, onclick: () => document.getElementById(id).scrollIntoView() });
  };
  const claims = [...page.querySelectorAll(".ledger h3")].map((heading) => link(heading.id, heading.textContent));
  return el(
    "nav",
    { class: "contents", "aria-label": "Contents" },
    page.querySelector("#tables") && link("tables", "Tables"),
    el("div", {}, link("ledger", "Claims"), ...claims),
    link("runs", "Recorded runs"),
  );
}

function measuredTables(judged) {
  return judged.tables.filter((table) => table.rows.some(([, cells]) => cells.some((cell) => cell.ours !== null)));
}

// How many claims have each verdict; each number leads to its claims.
function counted(ledger, weights) {
  const facts = Object.keys(VERDICTS).map((verdict) => {
    const count = ledger.claims.filter((claim) => claim.verdict === verdict).length;
    if (!count) return null;
    const href = addressOf("study", { verdict, weights });
    return el("a", { class: "fact", href }, el("b", { text: count }), verdict);
  });
  const words = `The paper's ${plural(ledger.claims.length, "claim")}, by verdict`;
  return [el("p", { class: "note", text: words }), el("div", { class: "facts" }, ...facts)];
}

export function runsTable(runs) {
  const rows = runs.map((run) => [
    el("th", { scope: "row", text: run.name }),
    el("td", {}, el("a", { href: addressOf("curves", { of: `${run.task}, runs` }), text: run.task })),
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
    entry("holds weaker", "within the tolerance (0.05; less next to 0 and 1), but the intervals do not meet or a seed is off by more"),
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
  const notes = [`The paper's ${held.where}`, ...held.limits];
  if (held.left_out) notes.push(`Left out: ${held.left_out}`);
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
  const runs = plural(cell.seeds, "seed") + (cell.shortened ? ", a quarter of the steps" : "");
  const interval = cell.low === null ? "" : `${cell.low.toFixed(3)}–${cell.high.toFixed(3)}`;
  return el(
    "td",
    { class: `number agreement ${kind}`, title: `${words}; ${runs}` },
    el("b", { text: `${cell.ours.toFixed(3)} ${sign}` }),
    el("span", { class: "interval", text: interval }),
    paper,
  );
}
