// What is chosen on a stage: two decoders, filters, a problem and a step; and which problems pass the filters.

export const OUTCOMES = { all: "any outcome", failures: "failures", solved: "solved", differ: "only one solves it" };
const NONE = -1;

export class Choice {
  constructor(stages, stories) {
    this.stages = stages;
    this.stories = stories;
    this.select(stories[0].stage); // what the first view begins with
  }

  get stage() {
    return this.stages[this.at];
  }

  get decoders() {
    return [this.a, this.b].filter((place) => place !== NONE).map((place) => this.stage.decoders[place]);
  }

  // Select a task: the two decoders of its story and the problem that shows it.
  select(at) {
    this.at = at;
    const story = this.stories.find((one) => one.stage === at);
    const [a, b] = story.models[0].decoders.filter((place) => place !== null);
    this.a = a ?? 0;
    this.b = b ?? this.stage.decoders.findIndex((_, place) => place !== this.a);
    Object.assign(this, { outcome: "all", stratum: "", role: "", problem: story.problem ?? NONE });
    this.settle();
  }

  // The first problem that only one decoder solves; or else one that a decoder fails.
  telling(problems) {
    const solved = (problem) => this.decoders.map((decoder) => decoder.exact[decoder.rowOf.get(problem)]);
    const differing = problems.find((problem) => new Set(solved(problem)).size > 1);
    return differing ?? problems.find((problem) => solved(problem).includes(0)) ?? problems[0] ?? NONE;
  }

  // Read names from an address; ignore those that this page does not have.
  read(query) {
    const named = this.stages.findIndex((stage, place) => String(place) === query.get("stage"));
    if (named >= 0 && (named !== this.at || query.has("a"))) this.select(named);
    const decoder = (key) => this.stage.decoders.findIndex((one) => one.name === query.get(key));
    if (query.has("a") && decoder("a") >= 0) this.a = decoder("a");
    if (query.has("a")) this.b = query.has("b") ? decoder("b") : NONE;
    if (query.get("outcome") in OUTCOMES) this.outcome = query.get("outcome");
    if (this.stage.strata.includes(query.get("stratum"))) this.stratum = query.get("stratum");
    if (this.stage.roleNames.includes(query.get("role"))) this.role = query.get("role");
    if (query.has("a")) this.problem = NONE;
    const problem = Number(query.get("problem")) - 1;
    if (query.has("problem") && this.stage.strata[problem] !== undefined) this.problem = problem;
    this.settle();
    const step = Number(query.get("step"));
    if (query.has("step") && Number.isInteger(step) && step >= 0) this.step = step;
  }

  entries() {
    const name = (place) => (place === NONE ? "" : this.stage.decoders[place].name);
    return {
      stage: this.at,
      a: name(this.a),
      b: name(this.b),
      outcome: this.outcome === "all" ? "" : this.outcome,
      stratum: this.stratum,
      role: this.role,
      problem: this.problem === NONE ? "" : this.problem + 1,
      step: this.step ?? "",
    };
  }

  // Problems that all chosen decoders decoded and that pass the filters.
  problems() {
    const { stage, decoders } = this;
    return Array.from(stage.strata.keys()).filter((problem) => {
      const rows = decoders.map((decoder) => decoder.rowOf.get(problem));
      if (rows.includes(undefined)) return false;
      if (this.stratum && stage.strata[problem] !== this.stratum) return false;
      const exact = rows.map((row, place) => decoders[place].exact[row] === 1);
      if (this.outcome === "failures" && exact.every(Boolean)) return false;
      if (this.outcome === "solved" && !exact.every(Boolean)) return false;
      if (this.outcome === "differ" && new Set(exact).size < 2) return false;
      return !this.role || rows.some((row, place) => this.firstRole(decoders[place], row, problem) === this.role);
    });
  }

  firstRole(decoder, row, problem) {
    const cell = decoder.firstWrong[row];
    return cell < 0 ? "" : (this.stage.roleNames[this.stage.role[problem * this.stage.cells + cell]] ?? "");
  }

  // Roles of the chosen decoders' first wrong commits.
  roles() {
    const rolesOf = (decoder) => Array.from(decoder.row, (problem, row) => this.firstRole(decoder, row, problem));
    const found = new Set(this.decoders.flatMap(rolesOf));
    return this.stage.roleNames.filter((name) => found.has(name));
  }

  // Keep the problem if it passes the filters, otherwise select a telling one that does.
  settle() {
    if (!this.roles().includes(this.role)) this.role = "";
    const left = this.problems();
    if (!left.includes(this.problem)) this.problem = this.telling(left);
    this.step = null;
  }
}
