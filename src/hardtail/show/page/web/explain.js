// What happened to a problem, a sentence for each decoder: where it went wrong, or when it knew enough.

import { el } from "./dom.js";
import { parentsOf } from "./replay.js";

export function explanation(stage, problem, panes) {
  const failed = panes.find((pane) => !pane.replay.exact && pane.replay.firstWrong >= 0);
  const cell = failed?.replay.firstWrong ?? -1;
  return panes.map(({ replay }, place) =>
    el(
      "p",
      { class: "because" },
      el("b", { class: "letter", text: "AB"[place] }),
      el("b", { class: replay.exact ? "good" : "bad", text: replay.exact ? "Solved. " : "Failed. " }),
      replay.exact ? waited(stage, problem, cell, replay) : (replay.sentence ?? "Cells are still hidden at the end."),
    ),
  );
}

// When a decoder that solves the problem wrote the cell that the other one got wrong.
function waited(stage, problem, cell, replay) {
  const replaced = replay.events().filter((event) => event.replaced).length;
  if (replaced) return `It replaces a token ${replaced === 1 ? "once" : `${replaced} times`} on the way.`;
  if (cell < 0) return "";
  const commit = replay.commit(cell, replay.steps);
  if (!commit) return "";
  const parents = parentsOf(stage, problem, cell);
  const known = parents.length === 1 ? stage.cellNames[parents[0]] : "all that it waits for";
  const when = parents.length && commit.ready ? `, when ${known} is known` : "";
  return `It writes ${stage.cellNames[cell]} in step ${commit.step} of ${replay.steps}${when}.`;
}
