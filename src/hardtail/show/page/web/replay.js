// One decoder on one problem: the answer after any number of steps.

export class Replay {
  constructor(stage, decoder, row) {
    this.stage = stage;
    this.decoder = decoder;
    this.problem = decoder.row[row];
    this.exact = decoder.exact[row] === 1;
    this.firstWrong = decoder.firstWrong[row];
    this.sentence = decoder.failures[row] ?? null; // about its first wrong commit
    this.from = row ? decoder.end[row - 1] : 0;
    this.to = decoder.end[row];
    this.steps = this.to > this.from ? decoder.step[this.to - 1] + 1 : 0;
    const start = this.problem * stage.length + stage.promptLength[this.problem];
    this.gold = stage.tokens.subarray(start, start + stage.cells);
    this.flags = stage.flags.subarray(this.problem * stage.cells, (this.problem + 1) * stage.cells);
  }

  // What each cell looks like after `step` steps.
  looks(step) {
    const { stage, decoder } = this;
    const looks = Array.from({ length: stage.cells }, (_, cell) => {
      const maskable = (this.flags[cell] & 1) === 1;
      return { cell, given: !maskable, hidden: maskable, token: maskable ? stage.mask : this.gold[cell], event: -1 };
    });
    for (let event = this.from; event < this.to && decoder.step[event] < step; event++) {
      const look = looks[decoder.cell[event]];
      look.token = decoder.token[event];
      look.event = event;
      look.hidden = look.token === stage.mask;
      if (look.hidden) continue;
      if (look.written !== undefined && look.written !== look.token) look.replaced = seen(stage.signs[look.written]);
      look.written = look.token;
    }
    for (const look of looks) this.finish(look, step);
    return looks;
  }

  finish(look, step) {
    const { stage, decoder } = this;
    look.gold = this.gold[look.cell];
    look.sign = look.hidden ? "" : seen(stage.signs[look.token]);
    look.goldSign = seen(stage.signs[look.gold]);
    look.meant = (this.flags[look.cell] & 4) !== 0;
    if (look.event < 0) return;
    look.now = decoder.step[look.event] === step - 1;
    if (look.hidden) return;
    look.wrong = look.token !== look.gold;
    look.unready = decoder.ready[look.event] === 0;
    look.prob = share(decoder.prob, look.event);
    look.part = this.steps > 1 ? decoder.step[look.event] / (this.steps - 1) : 0;
  }

  // The commit that a cell shows after `step` steps; null if there is none.
  commit(cell, step) {
    const { decoder } = this;
    let found = -1;
    for (let event = this.from; event < this.to && decoder.step[event] < step; event++)
      if (decoder.cell[event] === cell) found = event;
    if (found < 0) return null;
    const [prob, goldProb] = [share(decoder.prob, found), share(decoder.goldProb, found)];
    const ready = decoder.ready[found] === 1;
    return { step: decoder.step[found] + 1, prob, goldProb, goldRank: decoder.goldRank[found], ready };
  }

  // Every event as the strip under a decoder shows it.
  events() {
    const { decoder } = this;
    const written = new Map();
    return Array.from({ length: this.to - this.from }, (_, place) => {
      const event = this.from + place;
      const cell = decoder.cell[event];
      const token = decoder.token[event];
      const again = token === this.stage.mask;
      const replaced = !again && written.has(cell) && written.get(cell) !== token;
      if (!again) written.set(cell, token);
      return {
        cell,
        step: decoder.step[event],
        prob: share(decoder.prob, event),
        again,
        replaced,
        wrong: !again && token !== this.gold[cell],
        unready: !again && decoder.ready[event] === 0,
      };
    });
  }
}

// A sign that can be seen; a space could not be told from nothing.
function seen(sign) {
  return sign.trim() ? sign : "␣";
}

// A probability; null if the decoder's are unknown.
function share(shares, event) {
  return shares && shares[event] / 65535;
}

export function parentsOf(stage, problem, cell) {
  const at = (problem * stage.cells + cell) * stage.parentSlots;
  return Array.from(stage.parents.subarray(at, at + stage.parentSlots)).filter((parent) => parent >= 0);
}

export function roleOf(stage, problem, cell) {
  return stage.roleNames[stage.role[problem * stage.cells + cell]] ?? "";
}

export function promptOf(stage, problem) {
  const start = problem * stage.length;
  const tokens = stage.tokens.subarray(start, start + stage.promptLength[problem]);
  return Array.from(tokens, (token) => stage.signs[token]);
}
