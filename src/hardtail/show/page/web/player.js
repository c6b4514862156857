// One failure that plays by itself, the two ways of decoding in step; it stops at the mistake for a moment.

import { el } from "./dom.js";
import { addressOf } from "./address.js";
import { explanation } from "./explain.js";
import { Pane } from "./pane.js";

const STEP = 170; // milliseconds
const AT_START = 700;
const AT_MISTAKE = 2600;
const AT_END = 4000;

export class Player {
  constructor(story, stage) {
    const { problem } = story;
    const places = story.models[0].decoders.filter((place) => place !== null);
    const decoders = places.map((place) => stage.decoders[place]).filter((one) => one.rowOf.has(problem));
    const go = (step) => this.pause(step);
    this.panes = decoders.map((decoder, place) => new Pane(stage, decoder, problem, "AB"[place], go));
    this.last = Math.max(...this.panes.map((pane) => pane.replay.steps));
    const mistakes = this.panes.filter((pane) => !pane.replay.exact).map((pane) => pane.firstMistake);
    this.mistake = Math.min(...mistakes, this.last);
    this.button = el("button", { type: "button", class: "quiet", onclick: () => this.toggle() });
    this.timer = 0;
    this.wanted = !matchMedia("(prefers-reduced-motion: reduce)").matches;
    const kinds = this.panes.some((pane) => pane.scene.stacked) ? "panes stacked" : "panes";
    const names = decoders.map((decoder) => decoder.name);
    const href = addressOf("theatre", { stage: story.stage, a: names[0], b: names[1] ?? "", problem: problem + 1 });
    this.node = el(
      "section",
      { class: "player", "aria-label": "One failure, step by step" },
      el(
        "div",
        { class: "headline" },
        el("h2", { text: decoders.length > 1 ? "One failure, both ways in step" : "One failure, step by step" }),
        el("p", { class: "buttons" }, this.button, el("a", { href, text: "Step through it in the theatre" })),
      ),
      el("div", { class: kinds }, ...this.panes.map((pane) => pane.node)),
      el("div", { class: "told card" }, ...explanation(stage, problem, this.panes)),
    );
    this.goTo(this.wanted ? 0 : this.mistake);
    this.label();
    // Play only what is seen, and nothing after the page shows something else.
    new IntersectionObserver(([seen]) => (seen.isIntersecting ? this.play() : this.rest())).observe(this.node);
  }

  goTo(step) {
    this.step = step;
    for (const pane of this.panes) pane.paint(step);
  }

  toggle() {
    this.wanted = !this.wanted;
    this.label();
    if (this.wanted) this.play();
    else this.rest();
  }

  // The reader has chosen a step.
  pause(step) {
    this.wanted = false;
    this.label();
    this.rest();
    this.goTo(step);
  }

  label() {
    this.button.textContent = this.wanted ? "❚❚ Pause" : "▶ Play";
  }

  play() {
    this.rest();
    if (this.wanted) this.timer = setTimeout(() => this.advance(), this.delay());
  }

  rest() {
    clearTimeout(this.timer);
  }

  advance() {
    if (!this.node.isConnected) return;
    this.goTo(this.step >= this.last ? 0 : this.step + 1);
    this.play();
  }

  delay() {
    if (this.step === 0) return AT_START;
    if (this.step >= this.last) return AT_END;
    return this.step === this.mistake ? AT_MISTAKE : STEP;
  }
}
