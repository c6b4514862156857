// One decoder on the stage: its name, the drawing, and a strip of its commits in time.

import { el, probability, svg } from "./dom.js";
import { stepColour } from "./colours.js";
import { parentsOf, Replay } from "./replay.js";
import { sceneOf } from "./scenes.js";

const STRIP = 36;

export class Pane {
  constructor(stage, decoder, problem, title, onStep) {
    this.replay = new Replay(stage, decoder, decoder.rowOf.get(problem));
    this.scene = new (sceneOf(stage.task))(stage, problem, this.replay.gold);
    this.scene.node.setAttribute("aria-label", `${decoder.name}, the answer as it fills in`);
    this.state = el("span", { class: "state" });
    this.node = el(
      "article",
      { class: "pane card", "aria-label": `${title}: ${decoder.name}` },
      el(
        "header",
        {},
        el("b", { class: "letter", text: title }),
        el("h2", { text: decoder.model }),
        el("span", { class: "policy", text: decoder.policy }),
        this.state,
      ),
      el("div", { class: "scroll picture" }, this.scene.node),
      this.strip(onStep),
    );
  }

  // The step after the first wrong commit that was kept; the last step if nothing is wrong.
  get firstMistake() {
    const { replay } = this;
    const wrong = replay.events().filter((event) => event.wrong && event.cell === replay.firstWrong);
    return wrong.length ? wrong.at(-1).step + 1 : replay.steps;
  }

  strip(onStep) {
    const events = this.replay.events();
    this.marks = events;
    this.cursor = svg("rect", { y: 0, height: STRIP + 8, width: 1, class: "place" });
    const frame = { viewBox: `0 0 ${Math.max(events.length, 1)} ${STRIP + 8}`, preserveAspectRatio: "none" };
    const words = svg("title", { text: "All commits in time, as high as they were sure; choose one to go there" });
    const node = svg("svg", { class: "strip", ...frame, "aria-hidden": "true" }, words);
    const apart = events.length > 150 ? 0 : 0.08; // gaps narrower than a pixel would only pale the colours
    if (!apart) node.setAttribute("shape-rendering", "crispEdges");
    events.forEach((event, place) => {
      const high = event.again ? 3 : 3 + (STRIP - 3) * event.prob;
      const bar = { x: place + apart, width: 1 - 2 * apart, y: STRIP + 8 - high, height: high };
      const kind = event.again ? "again" : event.replaced ? "replaced" : event.wrong ? "wrong" : "right";
      const mark = svg("rect", { ...bar, class: kind });
      if (kind === "right")
        mark.style.fill = stepColour(this.replay.steps > 1 ? event.step / (this.replay.steps - 1) : 0).fill;
      node.append(mark);
      if (event.unready) node.append(svg("rect", { ...bar, y: 0, height: 4, class: "flag" }));
    });
    node.append(this.cursor);
    node.addEventListener("click", (click) => {
      const box = node.getBoundingClientRect();
      const place = Math.floor(((click.clientX - box.left) / box.width) * events.length);
      if (events[place]) onStep(events[place].step + 1);
    });
    return node;
  }

  paint(step) {
    const { replay } = this;
    const now = Math.min(step, replay.steps);
    const looks = replay.looks(now);
    this.scene.paint(looks);
    const first = this.marks.findIndex((event) => event.step === now - 1);
    const next = this.marks.findIndex((event) => event.step >= now);
    const end = next < 0 ? this.marks.length : next;
    this.cursor.setAttribute("x", first < 0 ? 0 : first);
    this.cursor.setAttribute("width", first < 0 ? 0 : end - first);
    const made = this.marks.slice(0, end);
    const wrong = looks.filter((look) => look.wrong).length;
    const replaced = made.filter((event) => event.replaced).length;
    const unready = made.filter((event) => event.unready).length;
    const outcome = now < replay.steps ? "" : replay.exact ? "✓ solved" : "✗ failed";
    const counts = [wrong && `${wrong} wrong`, unready && `${unready} unready`, replaced && `${replaced} replaced`];
    this.state.textContent = [`${now}/${replay.steps}`, ...counts, outcome].filter(Boolean).join(" · ");
    this.state.className = `state${outcome ? (replay.exact ? " good" : " bad") : ""}`;
    requestAnimationFrame(() => this.follow()); // not before the pane is in the page
  }

  // Where the drawing is larger than its frame, as on a phone, keep this step's commit in sight.
  follow() {
    const frame = this.scene.node.parentElement;
    const cell = this.scene.node.querySelector(".tile.now");
    if (!cell) return;
    const [box, sight] = [cell.getBoundingClientRect(), frame.getBoundingClientRect()];
    if (box.left < sight.left || box.right > sight.right)
      frame.scrollLeft += box.left + box.width / 2 - sight.left - sight.width / 2;
    if (box.top < sight.top || box.bottom > sight.bottom)
      frame.scrollTop += box.top + box.height / 2 - sight.top - sight.height / 2;
  }

  // Describe one cell's commit in a line of text.
  describe(cell, now) {
    const step = Math.min(now, this.replay.steps);
    const commit = this.replay.commit(cell, step);
    const look = this.replay.looks(step)[cell];
    if (look.given) return "given by the problem";
    if (!commit || look.hidden) return "still hidden";
    const sure = (prob) => (prob === null ? "" : `, probability ${probability(prob)}`); // other tools' canvases have none
    const rank = commit.goldProb === null ? "" : ` ranked ${commit.goldRank + 1}`;
    const gold = `; gold ${look.goldSign}${rank}${sure(commit.goldProb)}`;
    const { parentSlots } = this.replay.stage; // null: nothing is known of what cells wait for
    const waits = parentSlots !== null && parentsOf(this.replay.stage, this.replay.problem, cell).length;
    const ready = waits ? `; ${commit.ready ? "after" : "before"} its prerequisites` : "";
    const instead = look.replaced ? ` instead of ${look.replaced}` : "";
    return `${look.sign}${instead} in step ${commit.step}${sure(commit.prob)}${look.wrong ? gold : ""}${ready}`;
  }
}
