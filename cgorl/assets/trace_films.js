// The trace and its branches as films: each has of its own what comes after it parted, and shares with its parent what came before.
import { unpack } from "./packed.js";

const RULE_COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8A6D3B", "#6A5ACD"];
const SCENES_KEPT = 60;

export class Films {
  constructor(model) {
    this.model = model;
    this.first = null; // the first graph, as it is drawn in a small space
    this.films = new Map(); // number -> { rows: [rule, where, share], where, costs }
    this.scenes = new Map(); // "number/step" -> [before, after]; null: asked for
    this.asked = new Set();
    this.hold = false; // what is missing is on its way unasked
    this.rules = []; // in the order in which they were first met, which gives them their colours
  }

  start(whole) {
    this.first = whole;
    const costs = whole.first === null ? [] : [whole.first];
    this.films.set(0, this.longer({ rows: [], where: [], costs }, whole));
  }

  colour(rule) {
    if (!this.rules.includes(rule)) this.rules.push(rule);
    return RULE_COLOURS[this.rules.indexOf(rule) % RULE_COLOURS.length];
  }

  // The films that the kernel knows of, the trace first: number, parent, at, by, rule, where, rewrites, cost_ms, best_ms, ended.
  get list() {
    return this.model.get("branches");
  }

  about(number) {
    return this.list.find((b) => b.number === number);
  }

  // The film of a branch, null while it is on its way.
  get(number) {
    const found = this.films.get(number);
    if (!found && number && !this.hold && !this.asked.has(number) && this.about(number)) {
      this.asked.add(number);
      this.model.send({ kind: "film", branch: number });
    }
    return found || null;
  }

  // Whose step it is: a branch's own, or of one that it came from.
  owner(number, k) {
    const about = this.about(number);
    return !number || !about || k >= about.at ? number : this.owner(about.parent, k);
  }

  // Both pictures of a step, null while they are on their way.
  pair(number, k) {
    const film = this.films.get(number);
    if (!film || k < 0 || k >= film.rows.length) return null;
    const owner = this.owner(number, k);
    const key = `${owner}/${k}`;
    if (!this.scenes.has(key)) {
      this.scenes.set(key, null);
      this.model.send({ kind: "step", branch: owner, step: k });
    }
    return this.scenes.get(key);
  }

  longer(film, more) {
    return {
      rows: [...film.rows, ...more.rows.map(([rule, where, share]) => [more.rules[rule], where, share])],
      where: [...film.where, ...more.where],
      costs: [...film.costs, ...more.costs],
    };
  }

  // What the kernel sends of a film from one of its steps on.
  async told(content, buffers) {
    if (content.kind === "step") {
      this.scenes.set(`${content.branch}/${content.step}`, await Promise.all(buffers.map(unpack)));
      for (const key of this.scenes.keys()) {
        if (this.scenes.size <= SCENES_KEPT) break;
        if (this.scenes.get(key)) this.scenes.delete(key);
      }
    }
    if (content.kind !== "film") return;
    const about = this.about(content.branch);
    if (!about) return; // dropped meanwhile
    const own = this.films.get(content.branch);
    const base = content.since > about.at ? own : this.get(about.parent);
    this.asked.delete(content.branch);
    if (!base || base.rows.length < content.since) return; // a part is missing: it is asked for when it is shown
    const before = { rows: base.rows.slice(0, content.since), where: base.where.slice(0, content.since), costs: base.costs.slice(0, content.since + 1) };
    this.films.set(content.branch, this.longer(before, content));
  }

  // Forgets what is there no more.
  tidy() {
    const there = new Set(this.list.map((b) => b.number));
    for (const number of this.films.keys()) if (number && !there.has(number)) this.films.delete(number);
    for (const key of this.scenes.keys()) if (!there.has(Number(key.split("/")[0])) && !key.startsWith("0/")) this.scenes.delete(key);
  }
}
