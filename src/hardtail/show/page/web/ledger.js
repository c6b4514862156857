// The ledger of the paper's claims: each verdict opens the records behind it.

import { chips, el, headline, shown, table } from "./dom.js";
import { addressOf } from "./address.js";

export const VERDICTS = {
  holds: ["holds", "=", "agrees"],
  "holds weaker": ["weaker", "≈", "near"],
  "does not hold": ["not", "≠", "differs"],
  "cannot be judged": ["unmeasured", "?", "too few cases to compare"],
  "not measured": ["unmeasured", "·", "not measured"],
};

const ACCURACY = /^[^:]+, [^:]+, [^:]+$/; // the label of an exact-match accuracy: scheme, order, stratum

export function ledgerSection(ledger, query) {
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
  const address = (verdict) => addressOf("study", { verdict, weights });
  const links = choices
    .filter(([, held]) => held.length)
    .map(([name, held]) => [address(name), `${name} ${held.length}`, name === wanted]);
  const shownClaims = new Map(choices).get(wanted) ?? claims;
  const list = el("div", { class: "ledger" });
  for (const part of new Set(shownClaims.map(partOf))) {
    const held = shownClaims.filter((claim) => partOf(claim) === part);
    const entries = held.map((claim) => claimEntry(claim, ledger, weights, claim === asked));
    list.append(el("h3", { id: `claims-${part}`, text: part }), ...entries);
  }
  return [headline("ledger", "The paper's claims", chips("Verdicts", links)), list];
}

function partOf(claim) {
  return claim.id.split(".")[0];
}

function claimEntry(claim, ledger, weights, open) {
  const [kind, sign] = VERDICTS[claim.verdict];
  const summary = el(
    "summary",
    {},
    el("span", { class: `verdict agreement ${kind}`, text: `${sign} ${claim.says}` }),
    el("span", { class: "words" }, claim.claim, el("span", { class: "numbers", text: numbers(claim) })),
    el("span", { class: "note", text: claim.where }),
  );
  const entry = el("details", { class: "claim", open }, summary);
  // A ledger has hundreds of records, so they are added when their claim is opened.
  entry.addEventListener(
    "toggle",
    () => entry.open && entry.childElementCount === 1 && entry.append(evidence(claim, ledger, weights)),
  );
  if (open) entry.append(evidence(claim, ledger, weights));
  return entry;
}

// The numbers of a claim: "46.2 % (paper) · 100 % (ours)".
function numbers(claim) {
  if (claim.ours === null) return `${claim.paper} (paper)`;
  const [figure, more] = claim.figures;
  const single = !more && figure && figure.paper !== null && figure.mean !== null && ACCURACY.test(figure.figure);
  const withoutIntervals = claim.ours.replaceAll(/ \[[^\]]*\]/g, "");
  if (!single) return `${claim.paper} (paper) · ${withoutIntervals} (ours)`;
  return `${inPercent(figure.paper)} (paper) · ${inPercent(figure.mean)} (ours)`;
}

function inPercent(share) {
  return `${+(100 * share).toFixed(1)} %`;
}

function evidence(claim, ledger, weights) {
  const facts = [
    ["paper", claim.paper],
    ["ours", claim.ours ?? "–"],
    ["seeds", claim.seeds],
    ...(claim.shortened ? [["steps", "a quarter of the paper's"]] : []),
    ...claim.run_caveats.map((caveat) => ["caveat", caveat]),
    ["id", claim.id],
  ];
  if (claim.left_out.length) {
    facts.push(["left out", claim.left_out.map(({ run, why }) => `${run} (${why})`).join(", ")]);
  }
  if (claim.caveat) facts.push(["note", claim.caveat]);
  const list = el("dl", {}, ...facts.flatMap(([term, value]) => [el("dt", { text: term }), el("dd", { text: value })]));
  const box = el("div", { class: "evidence" }, list);
  const parts = claim.parts.map((part) => [part.rule, part.paper, part.ours ?? "–", part.verdict, part.remark ?? ""]);
  if (parts.length > 1 && claim.ours) box.append(plainTable(["rule", "paper", "ours", "verdict", "remark"], parts));
  const text = (value) => (Array.isArray(value) ? value.map((end) => shown(end)).join("–") : shown(value));
  const records = claim.records.map((number) => ledger.records[number].map(text));
  if (records.length) box.append(plainTable(ledger.columns, records));
  else box.append(el("p", { class: "note", text: "There is no recorded result for this claim yet." }));
  const href = addressOf("study", { claim: claim.id, weights });
  box.append(el("p", { class: "note" }, el("a", { href, text: "Link to this claim" })));
  return box;
}

function plainTable(columns, rows) {
  const cells = rows.map((row) => row.map((text) => el("td", { text })));
  return table(columns, cells);
}
