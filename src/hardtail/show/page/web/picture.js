// The picture of a story: for every model the share solved, ordinary instances and hard tail side by side, both ways.

import { el, percent } from "./dom.js";

const TICKS = [0, 50, 100];
const NEAR = 4; // per cent, about half a mark

export function picture(story, address) {
  const heads = story.strata.map(([, words], place) =>
    el("div", { class: "panel-head", text: capital(words), "data-panel": place }),
  );
  const rows = story.models.flatMap((model) => modelRow(story, model, address(model)));
  const feet = story.strata.map(() => el("div", { class: "scale" }, ...TICKS.map(tickOf)));
  const grid = el("div", { class: "dots", "data-panels": story.strata.length });
  grid.append(el("div", { class: "corner" }), ...heads, ...rows, el("div", { class: "corner" }), ...feet);
  return el("figure", { class: "card picture-card" }, el("figcaption", {}, key(story)), grid);
}

function key(story) {
  const entries = story.ways.map(([, words], way) =>
    el("span", {}, el("i", { class: `dot way-${way} sample`, "aria-hidden": "true" }), words),
  );
  const n = story.models.flatMap((model) => model.scores.map((score) => score.n));
  const [fewest, most] = [Math.min(...n), Math.max(...n)].map((count) => count.toLocaleString("en-GB"));
  const note = `n = ${fewest === most ? most : `${fewest} to ${most}`}, with 95 % intervals`;
  return el("p", { class: "key ways" }, ...entries, el("span", { class: "soft", text: note }));
}

function modelRow(story, model, href) {
  const kind = model.learned ? "model" : "model unlearned";
  const name = el("a", { href, text: model.name, title: "Watch it in the theatre" });
  const label = el("div", { class: kind }, name);
  if (!model.learned) label.append(el("span", { class: "note", text: "has not learned the task" }));
  return [label, ...story.strata.map((_, stratum) => panel(story, model, stratum))];
}

function panel(story, model, stratum) {
  const scores = model.scores.filter((score) => score.stratum === stratum);
  const track = el("div", { class: "track", "aria-hidden": "true" }, ...TICKS.map(ruleOf));
  if (scores.length === 2) {
    const [low, high] = scores.map(shareOf).sort((one, other) => one - other);
    track.append(placed(el("i", { class: "gap" }), low, high - low));
  }
  for (const score of scores) {
    const [low, high] = score.interval;
    track.append(placed(el("i", { class: `range way-${score.way}` }), 100 * low, 100 * (high - low)));
  }
  // The second mark is a ring; where it would cover the first, one sees through it.
  const [first, second] = scores.map(shareOf);
  const near = scores.length === 2 && Math.abs(first - second) < NEAR;
  for (const score of scores)
    track.append(placed(el("i", { class: `dot way-${score.way}${near ? " near" : ""}` }), shareOf(score)));
  const numbers = scores.map((score) =>
    el("span", {
      class: `figure way-${score.way}`,
      text: percent(score.right, score.n),
      title: `${story.ways[score.way][1]}: ${score.right.toLocaleString("en-GB")} of ${score.n.toLocaleString("en-GB")}`,
    }),
  );
  const kind = model.learned ? "panel" : "panel unlearned";
  return el("div", { class: kind }, track, el("div", { class: "figures" }, ...numbers));
}

function shareOf(score) {
  return (100 * score.right) / score.n;
}

function placed(node, left, width = null) {
  node.style.left = `${left}%`;
  if (width !== null) node.style.width = `${width}%`;
  return node;
}

function ruleOf(tick) {
  return placed(el("i", { class: "tick" }), tick);
}

function tickOf(tick) {
  return placed(el("span", { text: tick === 100 ? "100 %" : tick }), tick);
}

function capital(words) {
  return words.charAt(0).toUpperCase() + words.slice(1);
}
