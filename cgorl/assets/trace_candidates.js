// What else could be done at a step: the candidates, and how a branch goes on once one is chosen.
import { tableOf } from "./tables.js";
import { element, percent } from "./theme.js";
import { chipOf, signed } from "./trace_ledger.js";

const WAYS = { gain: "the largest gain", policy: "the policy", "": "nothing: this one alone" };

export class TraceCandidates {
  // `branch(row, by, steps)`: a candidate was chosen, to go on with so many rewrites.
  constructor(films, model, branch) {
    this.films = films;
    this.model = model;
    this.branch = branch;
    this.found = new Map(); // "number/step" -> the candidates; null: asked for
    this.host = element("div", "cgorl-candidates");
    this.told = element("p");
    const how = element("div", "cgorl-bar cgorl-how");
    this.by = element("select");
    this.by.ariaLabel = "a branch goes on by";
    for (const way of [...model.get("guides"), ""]) this.by.append(new Option(WAYS[way], way));
    this.steps = element("input");
    Object.assign(this.steps, { type: "number", min: 1, max: 200, step: 1, value: 20, ariaLabel: "rewrites at most" });
    this.steps.addEventListener("keydown", (e) => e.stopPropagation());
    this.by.addEventListener("change", () => (this.steps.disabled = !this.by.value));
    how.append("what if: click one, then on by", this.by, this.steps, "rewrites");
    this.list = element("div");
    this.host.append(this.told, how, this.list);
    this.host.hidden = !model.get("asks");
  }

  forget() {
    this.found.clear();
  }

  take(content) {
    this.found.set(`${content.branch}/${content.step}`, content);
  }

  // The candidates of step k; with `wait` they are not asked for yet.
  show(number, k, wait) {
    if (this.host.hidden) return;
    const key = `${number}/${k}`;
    const found = this.found.get(key);
    if (found === undefined && !wait) {
      this.found.set(key, null);
      this.model.send({ kind: "candidates", branch: number, step: k });
    }
    this.host.dataset.shown = found ? key : "";
    if (!found) {
      this.told.textContent = "looking at what else there is ...";
      return;
    }
    if (found.text) {
      this.told.textContent = found.text;
      this.list.replaceChildren();
      return;
    }
    const policy = found.by === "policy";
    const curious = found.rows.some((r) => r.bonus !== null && r.bonus !== undefined);
    this.told.textContent = this.words(found, policy);
    const head = ["", "rule", "where", "cost", ...(policy ? ["chance"] : []), ...(curious ? ["bonus"] : []), "taken"];
    this.list.title = curious ? "bonus: what the curiosity module pays for it, before it is scaled" : "";
    const rows = found.rows.map((r) => this.row(r, policy, curious));
    this.list.replaceChildren(tableOf(head, rows, [0, 3, ...(policy ? [4] : []), ...(curious ? [5] : [])]));
  }

  words(found, policy) {
    const many = `${found.count} candidate${found.count === 1 ? "" : "s"}`;
    const note = this.model.get("note");
    if (!found.count) return `nothing can be done here${note ? ` (${note})` : ""}`;
    if (!policy) return `${many}, the largest gain first${note ? ` (${note})` : ""}`;
    const values = `value ${found.value.toFixed(2)}, of bonuses to come ${found.curiosity.toFixed(2)} (each in its own scale)`;
    return `${many} as the policy sees them: stops with ${percent(found.stop)}, ${values}${note ? ` (${note})` : ""}`;
  }

  row(r, policy, curious) {
    const row = element("tr", r.taken ? "now" : "");
    const named = element("td");
    const name = element("button", "cgorl-sort", r.rule);
    name.title = "what if this was done instead";
    named.append(chipOf(this.films.colour(r.rule)), name);
    const where = element("td", "cgorl-where-name", r.at);
    where.title = r.at;
    row.append(element("td", "number", String(r.rank)), named, where);
    row.append(element("td", "number", signed(r.gain_ms)));
    if (policy) row.append(element("td", "number", r.chance === null ? "undoes it" : percent(r.chance)));
    if (curious) row.append(element("td", "number", r.bonus === null ? "" : Number(r.bonus.toPrecision(2)).toString()));
    row.append(element("td", "", r.branches.map((n) => (n ? String(n) : "trace")).join(", ")));
    row.addEventListener("click", () => this.branch(r, this.by.value, this.by.value ? Number(this.steps.value) || 1 : 0));
    return row;
  }
}
