// The branches: where each parted, what it came to, and how they compare.
import { tableOf } from "./tables.js";
import { element, milliseconds } from "./theme.js";
import { chipOf } from "./trace_ledger.js";

const BY = { gain: "gain", policy: "policy", "": "–" };

export class TraceBranches {
  // `act.choose(number)`, `act.drop(number)`, `act.goOn(number)`, `act.stop()`, `act.look(number)`: one is pointed at (-1: none).
  constructor(films, act) {
    this.films = films;
    this.act = act;
    this.host = element("div", "cgorl-branches");
    this.bar = element("div", "cgorl-bar");
    this.text = element("span", "cgorl-told");
    this.text.setAttribute("aria-live", "polite");
    this.stop = this.button("stop", "leaves the branch as far as it has come", () => act.stop());
    this.on = this.button("go on", "goes on with this branch", () => act.goOn(this.number));
    this.bar.append(this.on, this.stop, this.text);
    this.wrong = element("div", "cgorl-wrong");
    this.wrong.setAttribute("role", "alert");
    this.wrong.hidden = true;
    const pair = element("div", "cgorl-lower");
    this.list = element("div", "cgorl-ledger");
    this.rules = element("div", "cgorl-ledger");
    pair.append(this.list, this.rules);
    this.host.append(this.wrong, this.bar, pair);
    this.number = 0;
  }

  button(text, title, act) {
    const made = element("button", "", text);
    made.title = made.ariaLabel = title;
    made.addEventListener("click", act);
    return made;
  }

  say(sentence) {
    this.wrong.textContent = sentence;
    this.wrong.hidden = !sentence;
    if (sentence) this.host.hidden = false;
  }

  // `walk`: a branch is on its way, with so many rewrites left.
  show(number, walk) {
    this.number = number;
    const all = this.films.list;
    this.host.hidden = all.length < 2 && this.wrong.hidden;
    this.host.querySelector(".cgorl-lower").hidden = this.bar.hidden = all.length < 2;
    if (all.length < 2) return;
    const about = this.films.about(number);
    this.stop.hidden = !walk;
    this.on.hidden = Boolean(walk) || !number || !about || Boolean(about.ended);
    this.text.textContent = walk ? `branch ${walk.branch || "…"} goes on, ${walk.left} rewrites at most` : this.words(number, about);
    this.list.replaceChildren(tableOf(["", "parted at", "on by", "rewrites", "cost", "to the trace", ""], this.ordered(all).map((b) => this.row(b, all[0])), [3, 4, 5]));
    this.compare(all);
  }

  words(number, about) {
    if (!number || !about) return "";
    return about.ended ? `branch ${number} ended: ${about.ended}` : `branch ${number} has ${about.rewrites} rewrites so far`;
  }

  // Each below what it parted from.
  ordered(all) {
    const below = (number, depth) =>
      all.filter((b) => b.number && b.parent === number).flatMap((b) => [{ ...b, depth }, ...below(b.number, depth + 1)]);
    return [{ ...all[0], depth: 0 }, ...below(0, 1)];
  }

  row(b, trace) {
    const row = element("tr", b.number === this.number ? "now" : "");
    row.dataset.branch = b.number;
    const name = element("td");
    name.style.paddingLeft = `${8 + 14 * b.depth}px`;
    name.append(element("button", "cgorl-sort", b.number ? `branch ${b.number}` : "the trace"));
    const parted = element("td", "cgorl-where-name");
    if (b.number) {
      parted.append(element("span", "cgorl-name", `${b.at + 1}: `), chipOf(this.films.colour(b.rule)), b.rule);
      parted.title = `step ${b.at + 1}: ${b.rule} at ${b.where}${b.ended ? `; ended: ${b.ended}` : ""}`;
    }
    const share = trace.cost_ms ? 100 * (b.cost_ms / trace.cost_ms - 1) : 0;
    row.append(name, parted, element("td", "", b.number ? BY[b.by] : ""), element("td", "number", String(b.rewrites)));
    row.append(element("td", "number", milliseconds(b.cost_ms)), element("td", "number", b.number ? `${share > 0 ? "+" : share < 0 ? "−" : "±"}${Math.abs(share).toFixed(2)} %` : ""));
    const end = element("td");
    if (b.number) {
      const drop = this.button("×", `drop branch ${b.number}`, (e) => {
        e.stopPropagation();
        this.act.drop(b.number);
      });
      drop.className = "cgorl-sort";
      end.append(drop);
    }
    row.append(end);
    row.addEventListener("click", () => this.act.choose(b.number));
    row.addEventListener("pointerenter", () => this.act.look(b.number));
    row.addEventListener("pointerleave", () => this.act.look(-1));
    return row;
  }

  // How often each rule was used in each way, those that differ first.
  compare(all) {
    const ways = all.filter((b) => this.films.get(b.number));
    const counts = ways.map((b) => {
      const found = new Map();
      for (const [rule] of this.films.get(b.number).rows) found.set(rule, (found.get(rule) || 0) + 1);
      return found;
    });
    const rules = [...new Set(counts.flatMap((c) => [...c.keys()]))];
    const differs = (rule) => new Set(counts.map((c) => c.get(rule) || 0)).size > 1;
    rules.sort((a, b) => differs(b) - differs(a));
    const rows = rules.map((rule) => {
      const row = element("tr", differs(rule) ? "" : "cgorl-same");
      const name = element("td");
      name.append(chipOf(this.films.colour(rule)), rule);
      row.append(name, ...counts.map((c) => element("td", "number", String(c.get(rule) || "–"))));
      return row;
    });
    const head = ["rewrites by rule", ...ways.map((b) => (b.number ? String(b.number) : "trace"))];
    this.rules.replaceChildren(tableOf(head, rows, ways.map((_, k) => k + 1)));
  }
}
