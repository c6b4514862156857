// The first view: what was run, the study's tables beside the paper's, and the ledger of its claims.

import { el, plural, shown } from "./dom.js";
import { addressOf } from "./address.js";

const VERDICTS = {
  holds: ["holds", "=", "agrees"],
  "holds weaker": ["weaker", "≈", "near"],
  "does not hold": ["not", "≠", "differs"],
  "not measured": ["unmeasured", "·", "not measured"],
};

export function overviewView(content, query) {
  const judged = content.judged.find((choice) => choice.weights === query.get("weights")) ?? content.judged[0];
  const page = el("section", { class: "page" }, heading(content, judged?.ledger, query.get("weights")));
  page.append(content.runs.length ? runsTable(content.runs) : noRuns());
  if (!judged) return page;
  if (content.judged.some((choice) => measuredTables(choice).length)) {
    const chips = weightsChips(
      content.judged.map((choice) => choice.weights),
      judged.weights,
    );
    const tables = measuredTables(judged).map(studyTable);
    if (!tables.length) tables.push(el("p", { class: "empty", text: "Nothing is recorded of these weights." }));
    page.append(headline("tables", "The study's tables", chips), tablesKey(), ...tables);
  }
  page.append(...ledgerSection(judged.ledger, query));
  return page;
}

function measuredTables(judged) {
  return judged.tables.filter((table) => table.rows.some(([, cells]) => cells.some((cell) => cell.ours !== null)));
}

function headline(id, text, chips) {
  return el("div", { class: "headline", id }, el("h2", { text }), chips);
}

// The paper took the weights with the best probe for its tables; the last ones often tell another story.
function weightsChips(choices, current) {
  return el(
    "nav",
    { class: "chips", "aria-label": "Weights" },
    el("span", { class: "note", text: "weights" }),
    ...choices.map((weights) =>
      el("a", {
        href: addressOf("overview", { weights }),
        "aria-current": weights === current ? "true" : null,
        text: weights,
      }),
    ),
  );
}

function heading(content, ledger, weights) {
  const decoders = content.stages.reduce((sum, stage) => sum + stage.decoders.length, 0);
  const problems = content.stages.reduce((sum, stage) => sum + stage.strata.length, 0);
  const held = ledger ? ledger.claims.filter((claim) => claim.verdict !== "not measured") : [];
  const facts = [
    [content.runs.length, "runs", "#overview"],
    [decoders, "decoders to watch", "#theatre"],
    [problems, "problems decoded", "#theatre"],
  ];
  if (ledger) {
    const address = addressOf("overview", { verdict: "measured", weights });
    facts.push([`${held.length}/${ledger.claims.length}`, "claims measured", address]);
  }
  return el(
    "header",
    { class: "hero" },
    el("h1", { text: "Where a decoder commits too early" }),
    el("p", {
      class: "lede",
      text:
        "Masked diffusion models on reasoning tasks whose logical order is known exactly: what was trained, " +
        "how it decodes, and which commits came before their prerequisites.",
    }),
    el(
      "div",
      { class: "facts" },
      ...facts.map(([number, words, href]) =>
        el(
          "a",
          { class: "fact", href },
          el("b", { text: typeof number === "number" ? number.toLocaleString("en-GB") : number }),
          words,
        ),
      ),
    ),
    content.stages.length
      ? el("p", {}, el("a", { class: "action", href: "#theatre", text: "Open the decoder theatre" }))
      : null,
    el("p", { class: "note", text: `hardtail ${content.version}` }),
  );
}

function noRuns() {
  return el("p", {
    class: "empty",
    text:
      "No recorded run is in this page. Runs that “hardtail study” trains and records are listed here, with the " +
      "study’s tables and the paper’s claims.",
  });
}

function runsTable(runs) {
  const columns = ["run", "task", "seed", "steps", "device", "time", "commit"];
  const body = runs.map((run) =>
    el(
      "tr",
      {},
      el("th", { scope: "row", text: run.name }),
      el("td", {}, el("a", { href: addressOf("curves", { task: run.task }), text: run.task })),
      ...[run.seed, shown(run.steps), run.device, duration(run.wall), String(run.commit ?? "–").slice(0, 9)].map(
        (value, place) =>
          el("td", { class: place === 0 || place === 1 || place === 3 ? "number" : null, text: value ?? "–" }),
      ),
    ),
  );
  return el(
    "details",
    { class: "card", open: runs.length <= 12 },
    el("summary", { text: plural(runs.length, "run") }),
    scrolling(
      el(
        "table",
        {},
        el("thead", {}, el("tr", {}, ...columns.map((text) => el("th", { scope: "col", text })))),
        el("tbody", {}, ...body),
      ),
    ),
  );
}

function duration(seconds) {
  if (typeof seconds !== "number") return "–";
  return seconds < 90
    ? `${Math.round(seconds)} s`
    : seconds < 5400
      ? `${Math.round(seconds / 60)} min`
      : `${(seconds / 3600).toFixed(1)} h`;
}

function scrolling(node) {
  return el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Table, scrolls sideways" }, node);
}

function tablesKey() {
  const entry = (verdict, words) =>
    el("span", { class: `agreement ${VERDICTS[verdict][0]}` }, `${VERDICTS[verdict][1]} ${words}`);
  return el(
    "p",
    { class: "key" },
    "In each cell our mean over seeds, its 95 % interval, and below it the paper's figure. ",
    entry("holds", "agrees"),
    entry("holds weaker", "within 0.05, intervals apart"),
    entry("does not hold", "differs"),
  );
}

function studyTable(table) {
  const width = table.columns.length;
  const head = el(
    "thead",
    {},
    el(
      "tr",
      {},
      el("td", {}),
      ...table.groups.map((text) => el("th", { scope: "colgroup", colspan: width, class: "group", text })),
    ),
    el(
      "tr",
      {},
      el("th", { scope: "col", text: table.stub }),
      ...table.groups.flatMap(() => table.columns.map((text) => el("th", { scope: "col", text }))),
    ),
  );
  const body = table.rows.map(([name, cells]) =>
    el("tr", {}, el("th", { scope: "row", text: name }), ...cells.map(studyCell)),
  );
  return el(
    "figure",
    { class: "card" },
    el(
      "figcaption",
      {},
      el("h3", { text: table.title }),
      el("p", { class: "note", text: `The paper's ${table.where}` }),
      table.unlearned.length
        ? el("p", { class: "note", text: `Has not learned the task, and counts: ${table.unlearned.join(", ")}` })
        : null,
    ),
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

// -- the ledger -----------------------------------------------------------------------------------------------------

function ledgerSection(ledger, query) {
  const { claims } = ledger;
  const weights = query.get("weights");
  const measured = claims.filter((claim) => claim.verdict !== "not measured");
  const asked = claims.find((claim) => claim.id === query.get("claim"));
  const wanted = query.get("verdict") ?? (measured.length && (!asked || measured.includes(asked)) ? "measured" : "all");
  const choices = [
    ["measured", measured],
    ...Object.keys(VERDICTS).map((verdict) => [verdict, claims.filter((claim) => claim.verdict === verdict)]),
    ["all", claims],
  ];
  const chips = el("nav", { class: "chips", "aria-label": "Verdicts" });
  for (const [name, held] of choices) {
    if (!held.length) continue;
    const current = name === wanted ? "true" : null;
    chips.append(
      el("a", {
        href: addressOf("overview", { verdict: name, weights }),
        "aria-current": current,
        text: `${name} ${held.length}`,
      }),
    );
  }
  const shownClaims = new Map(choices).get(wanted) ?? claims;
  const list = el("div", { class: "ledger" });
  for (const part of new Set(shownClaims.map(partOf))) {
    list.append(
      el("h3", { text: part }),
      ...shownClaims
        .filter((claim) => partOf(claim) === part)
        .map((claim) => claimEntry(claim, ledger, weights, claim === asked)),
    );
  }
  return [headline("ledger", "The paper's claims", chips), list];
}

function partOf(claim) {
  return claim.id.split(".")[0];
}

function claimEntry(claim, ledger, weights, open) {
  const [kind, sign] = VERDICTS[claim.verdict];
  const entry = el(
    "details",
    { class: "claim", open },
    el(
      "summary",
      {},
      el("span", { class: `verdict agreement ${kind}`, text: `${sign} ${claim.verdict}` }),
      el("span", { class: "sentence", text: claim.claim }),
      el("span", { class: "note", text: claim.where }),
    ),
  );
  // A ledger has hundreds of records: they are written down when someone asks for them.
  entry.addEventListener(
    "toggle",
    () => entry.open && entry.childElementCount === 1 && entry.append(evidence(claim, ledger, weights)),
  );
  if (open) entry.append(evidence(claim, ledger, weights));
  return entry;
}

function evidence(claim, ledger, weights) {
  const facts = [
    ["paper", claim.paper],
    ["ours", claim.ours ?? "–"],
    ["seeds", claim.seeds],
    ["id", claim.id],
  ];
  if (claim.left_out.length) facts.push(["left out", `not learned: ${claim.left_out.join(", ")}`]);
  if (claim.caveat) facts.push(["note", claim.caveat]);
  const list = el("dl", {}, ...facts.flatMap(([term, value]) => [el("dt", { text: term }), el("dd", { text: value })]));
  const box = el("div", { class: "evidence" }, list);
  const parts = claim.parts.map((part) => [part.rule, part.paper, part.ours ?? "–", part.verdict, part.remark ?? ""]);
  if (parts.length > 1 && claim.ours) box.append(plainTable(["rule", "paper", "ours", "verdict", "remark"], parts));
  const records = claim.records.map((number) =>
    ledger.records[number].map((value) =>
      Array.isArray(value) ? value.map((end) => shown(end)).join("–") : shown(value),
    ),
  );
  if (records.length) box.append(plainTable(ledger.columns, records));
  else box.append(el("p", { class: "note", text: "No recorded result bears on it yet." }));
  box.append(
    el(
      "p",
      { class: "note" },
      el("a", { href: addressOf("overview", { claim: claim.id, weights }), text: "Link to this claim" }),
    ),
  );
  return box;
}

function plainTable(columns, rows) {
  return scrolling(
    el(
      "table",
      {},
      el("thead", {}, el("tr", {}, ...columns.map((text) => el("th", { scope: "col", text })))),
      el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((text) => el("td", { text }))))),
    ),
  );
}
