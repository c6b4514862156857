// The decoder theatre: pick a task, one or two decoders and a problem, and step through their commits.

import { clamp, el, emptyPage, plural } from "./dom.js";
import { noteAddress } from "./address.js";
import { Choice } from "./choice.js";
import { explanation } from "./explain.js";
import { colourKey, pickers, problemEntries } from "./controls.js";
import { Pane } from "./pane.js";
import { parentsOf, roleOf } from "./replay.js";

const PER_SECOND = 6;
const KEYS = {
  step: ["←", "→"],
  play: ["space"],
  "next or previous problem": ["n", "p"],
  "next failure": ["f"],
  "cells in the order of commits": [",", "."],
};

// Scroll a list, and nothing else, until an entry is in it.
function keepInSight(list, entry) {
  const [frame, box] = [list.getBoundingClientRect(), entry.getBoundingClientRect()];
  list.scrollTop += Math.min(0, box.top - frame.top) + Math.max(0, box.bottom - frame.bottom);
  list.scrollLeft += Math.min(0, box.left - frame.left) + Math.max(0, box.right - frame.right);
}

function keyNode([words, keys]) {
  return el("span", {}, ...keys.map((text) => el("kbd", { text })), words);
}

export class Theatre {
  constructor(stages, stories) {
    this.choice = stages.length ? new Choice(stages, stories) : null;
    this.panes = [];
    this.cell = null;
    this.timer = 0;
    this.frame = 0;
    document.addEventListener("keydown", (event) => this.key(event));
  }

  view(query) {
    if (!this.choice) {
      const reason = "Nothing was decoded for this page. Name models or traces: hardtail report RUN TRACE.npz …";
      return emptyPage("Decoder theatre", reason);
    }
    this.choice.read(query);
    this.controls = el("form", { class: "controls", "aria-label": "What is shown" });
    const small = matchMedia("(max-width: 1100px), (max-height: 600px)").matches; // there the drawings come first
    const folded = el("details", { class: "choosing", open: !small }, el("summary", { text: "Choose" }), this.controls);
    this.list = el("div", { class: "problems", role: "listbox", "aria-label": "Problems" });
    this.list.addEventListener("click", (event) => {
      const entry = event.target.closest("[data-problem]");
      if (entry) this.go(Number(entry.dataset.problem));
    });
    this.list.addEventListener("keydown", (event) => this.walkList(event));
    this.count = el("p", { class: "count", role: "status" });
    this.paneRow = el("div", { class: "panes" });
    this.keyNode = el("p", { class: "key colours" });
    this.node = el(
      "section",
      { class: "theatre", "aria-label": "Decoder theatre" },
      folded,
      el("aside", {}, this.count, this.list, this.keyNode),
      el("div", { class: "middle" }, this.paneRow, this.transport()),
    );
    this.refresh(this.choice.step);
    return this.node;
  }

  // -- choosing -------------------------------------------------------------------------------------------------------

  // A filter or a decoder has changed; the keyboard focus stays where it was.
  changed(name) {
    this.choice.settle();
    this.refresh(null);
    this.controls.elements[name].focus();
  }

  // Redraw everything at `step`; null is the first step that shows a mistake.
  refresh(step) {
    const { choice } = this;
    this.problems = choice.problems();
    this.controls.replaceChildren(...pickers(choice, (name) => this.changed(name)));
    this.count.textContent = `${plural(this.problems.length, "problem")} of ${choice.stage.strata.length}`;
    this.list.replaceChildren(...problemEntries(choice, this.problems));
    this.raise(step);
  }

  // Draw the chosen problem.
  raise(step) {
    const { choice } = this;
    this.stop();
    this.cell = null;
    const pane = (decoder, place) =>
      new Pane(choice.stage, decoder, choice.problem, "AB"[place], (to) => this.goTo(to));
    this.panes = choice.problem < 0 ? [] : choice.decoders.map(pane);
    const nothing = el("p", { class: "empty", text: "No problem passes these filters." });
    this.paneRow.replaceChildren(...(this.panes.length ? this.panes.map((one) => one.node) : [nothing]));
    this.paneRow.classList.toggle("stacked", this.panes.some((one) => one.scene.stacked));
    this.watchCells();
    const replaces = this.panes.some((one) => one.replay.events().some((event) => event.replaced));
    this.keyNode.replaceChildren(...colourKey(choice.stage, replaces));
    this.because.replaceChildren(...explanation(choice.stage, choice.problem, this.panes));
    this.last = Math.max(0, ...this.panes.map((one) => one.replay.steps));
    this.slider.max = this.last;
    const mistakes = this.panes.filter((one) => !one.replay.exact).map((one) => one.firstMistake);
    this.goTo(step ?? Math.min(...mistakes, this.last));
    this.paint();
    const entry = this.list.querySelector(`[data-problem="${choice.problem}"]`);
    this.list.querySelector("[aria-selected=true]")?.setAttribute("aria-selected", "false");
    entry?.setAttribute("aria-selected", "true");
    this.list.querySelector('[tabindex="0"]')?.setAttribute("tabindex", "-1");
    (entry ?? this.list.firstElementChild)?.setAttribute("tabindex", "0"); // the list is one stop on the way
    requestAnimationFrame(() => entry && keepInSight(this.list, entry)); // not before the list is in the page
  }

  // The arrow keys choose in the list, and the keyboard focus goes with them.
  walkList(event) {
    const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    this.walk(by);
    this.list.querySelector('[tabindex="0"]')?.focus();
  }

  go(problem) {
    if (problem === this.choice.problem) return;
    this.choice.problem = problem;
    this.raise(null);
  }

  // Go to the next problem of the list (`by` is 1) or the previous one (-1) that `keep` accepts.
  walk(by, keep = () => true) {
    const { problems, choice } = this;
    const here = problems.indexOf(choice.problem);
    for (let far = 1; far <= problems.length; far++) {
      const next = problems[(here + by * far + problems.length * far) % problems.length];
      if (keep(next)) return this.go(next);
    }
  }

  failed(problem) {
    return this.choice.decoders.some((decoder) => !decoder.exact[decoder.rowOf.get(problem)]);
  }

  // -- stepping -------------------------------------------------------------------------------------------------------

  transport() {
    const button = (label, key, text, onclick) =>
      el("button", { type: "button", "aria-label": label, title: `${label} (${key})`, text, onclick });
    this.play = button("Play", "space", "▶", () => this.toggle());
    this.play.className = "play";
    const back = button("One step back", "←", "‹", () => this.goTo(this.choice.step - 1));
    const forward = button("One step forward", "→", "›", () => this.goTo(this.choice.step + 1));
    this.slider = el("input", { type: "range", min: 0, max: 0, step: 1, "aria-label": "Step" });
    this.slider.addEventListener("input", () => this.goTo(Number(this.slider.value)));
    this.label = el("output", { class: "steps" });
    this.because = el("div", { class: "explained", "aria-live": "polite" });
    this.facts = el("div", { class: "told", "aria-live": "polite" });
    return el(
      "div",
      { class: "transport card" },
      el("div", { class: "row" }, this.play, back, this.slider, forward, this.label),
      el("div", { class: "sentences" }, this.because, this.facts),
    );
  }

  goTo(step) {
    this.choice.step = clamp(step, 0, this.last);
    this.slider.value = this.choice.step;
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.paint());
  }

  paint() {
    const { step } = this.choice;
    for (const pane of this.panes) pane.paint(step);
    this.label.textContent = `step ${step} of ${this.last}`;
    this.inspect(this.cell);
    noteAddress("theatre", this.choice.entries());
  }

  toggle() {
    if (this.timer) return this.stop();
    if (this.choice.step >= this.last) this.goTo(0);
    this.play.textContent = "❚❚";
    this.timer = setInterval(
      () => (this.choice.step >= this.last ? this.stop() : this.goTo(this.choice.step + 1)),
      1000 / PER_SECOND,
    );
  }

  stop() {
    clearInterval(this.timer);
    this.timer = 0;
    if (this.play) this.play.textContent = "▶";
  }

  // -- looking at a cell ----------------------------------------------------------------------------------------------

  watchCells() {
    for (const { scene } of this.panes) {
      const look = (event) => {
        const cell = event.target.closest("[data-cell]");
        const number = cell ? Number(cell.dataset.cell) : null;
        if (number !== null && number !== this.cell) this.inspect(number);
      };
      scene.node.addEventListener("pointerover", look);
      scene.node.addEventListener("click", look);
    }
  }

  inspect(cell) {
    const { stage, problem, step } = this.choice;
    this.cell = cell;
    const parents = cell === null ? [] : parentsOf(stage, problem, cell);
    for (const pane of this.panes) pane.scene.mark(cell, parents);
    if (cell === null)
      return this.facts.replaceChildren(
        el("p", { class: "note", text: "Choose a cell to see its commit." }),
        el("p", { class: "note keys" }, ...Object.entries(KEYS).map(keyNode)),
      );
    const names = parents.map((parent) => stage.cellNames[parent]).join(", ");
    const waits = stage.parentSlots ? `waits for ${names || "nothing"}` : "";
    const role = roleOf(stage, problem, cell);
    const head = [stage.cellNames[cell], role && `role ${role}`, waits].filter(Boolean).join(" · ");
    const lines = this.panes.map((pane, place) =>
      el("p", {}, el("b", { class: "letter", text: "AB"[place] }), pane.describe(cell, step)),
    );
    this.facts.replaceChildren(el("p", { class: "cell-name", text: head }), ...lines);
  }

  // -- keys -----------------------------------------------------------------------------------------------------------

  key(event) {
    if (document.body.dataset.view !== "theatre" || !this.panes.length) return;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest?.("select, summary")) return;
    const sliding = event.target === this.slider && event.key.startsWith("Arrow");
    const act = sliding ? null : this.actions()[event.key];
    if (!act || (event.key === " " && event.target.closest?.("button, a"))) return;
    event.preventDefault();
    act();
  }

  actions() {
    const { choice, panes } = this;
    const order = panes[0].replay.events().map((event) => event.cell);
    const cellAt = (by) => () => this.inspect(order[clamp(order.indexOf(this.cell) + by, 0, order.length - 1)]);
    return {
      ArrowLeft: () => this.goTo(choice.step - 1),
      ArrowRight: () => this.goTo(choice.step + 1),
      Home: () => this.goTo(0),
      End: () => this.goTo(this.last),
      " ": () => this.toggle(),
      n: () => this.walk(1),
      p: () => this.walk(-1),
      f: () => this.walk(1, (problem) => this.failed(problem)),
      ",": cellAt(-1),
      ".": cellAt(1),
    };
  }
}
