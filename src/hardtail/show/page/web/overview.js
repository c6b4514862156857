// The first view: for each task the story of its decodes in a sentence and a picture, and a failure that plays.

import { el, emptyPage, percent } from "./dom.js";
import { addressOf } from "./address.js";
import { picture } from "./picture.js";
import { Player } from "./player.js";
import { runsTable } from "./study.js";

export function overviewView(content) {
  const { stories, stages, runs } = content;
  if (!stories.length && !runs.length)
    return emptyPage("Nothing was decoded for this page", "Name models or traces: hardtail report RUN TRACE.npz …");
  const page = el("section", { class: "page overview" });
  stories.forEach((story, place) => page.append(...storySection(story, stages[story.stage], place === 0)));
  if (runs.length) page.append(el("h2", { text: "Runs" }), runsTable(runs));
  page.append(el("p", { class: "note version", text: `hardtail ${content.version}` }));
  return page;
}

function storySection(story, stage, first) {
  const sentence = el(
    first ? "h1" : "h2",
    { class: "sentence" },
    ...story.sentence.map(([text, way]) => el("span", { class: way === null ? null : `way-${way}`, text })),
  );
  const player = story.problem === null ? null : new Player(story, stage);
  return [
    el("header", { class: "hero" }, el("p", { class: "eyebrow", text: story.title }), sentence),
    picture(story, (model) => theatreAddress(story, stage, model)),
    player?.node ?? nothingFailed(story),
    mechanism(story),
  ].filter(Boolean);
}

// The reason in three numbers: commits are right where what they wait for was known and right.
function mechanism(story) {
  const kinds = story.mechanism.filter(([, , n]) => n);
  if (!kinds.length) return null;
  const entries = kinds.map(([words, right, n]) =>
    el(
      "div",
      {},
      el("b", { text: percent(right, n) }),
      el("span", { text: `right ${words}` }),
      el("span", { class: "note", text: `${right.toLocaleString("en-GB")} of ${n.toLocaleString("en-GB")} commits` }),
    ),
  );
  const [, hard] = story.strata.at(-1);
  const written = `what ${story.models[0].name} writes ${story.ways[0][1]} on ${hard}`;
  const title = story.gain > 0 ? `Why: ${written}` : `W${written.slice(1)}`;
  return el("section", { class: "mechanism" }, el("h2", { text: title }), el("div", { class: "three" }, ...entries));
}

function theatreAddress(story, stage, model) {
  const [a, b] = model.decoders.map((place) => (place === null ? "" : stage.decoders[place].name));
  const hard = story.strata.at(-1)[0];
  return addressOf("theatre", { stage: story.stage, a: a || b, b: a ? b : "", stratum: hard });
}

function nothingFailed(story) {
  const words = `Nothing fails ${story.ways[0][1]} here, so there is no failure to watch. `;
  return el("p", { class: "empty" }, words, el("a", { href: "#theatre", text: "Watch the decodes in the theatre" }));
}
