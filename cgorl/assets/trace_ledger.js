// The ledger: a row a rewrite, with its rule, where it was, and what it saved.
import { tableOf } from "./tables.js";
import { element, milliseconds, percent } from "./theme.js";

export const signed = (ms) => `${ms > 0 ? "−" : ms < 0 ? "+" : "±"}${milliseconds(Math.abs(ms))}`;

export function chipOf(colour) {
  const made = element("i", "cgorl-chip");
  made.style.background = colour;
  return made;
}

export class TraceLedger {
  // `choose(step)`: a row was clicked.
  constructor(films, choose) {
    this.films = films;
    this.choose = choose;
    this.host = element("div", "cgorl-ledger");
  }

  list(film) {
    const first = film.costs[0];
    const measured = film.rows.some((r) => r[2] !== null);
    const rows = film.rows.map(([rule, name, share], k) => {
      const row = element("tr");
      row.dataset.step = k;
      const named = element("td");
      named.append(chipOf(this.films.colour(rule)), rule);
      const gain = film.costs[k] - film.costs[k + 1];
      const where = element("td", "cgorl-where-name", name);
      where.title = name;
      row.append(element("td", "number", String(k + 1)), named, where);
      row.append(element("td", "number", signed(gain)), element("td", "number", percent(film.costs[k + 1] / first)));
      if (measured) row.append(element("td", "number", share === null ? "" : percent(share)));
      row.addEventListener("click", () => this.choose(k));
      return row;
    });
    this.host.replaceChildren(tableOf(["", "rule", "where", "cost", "of the first", ...(measured ? ["measured"] : [])], rows, [0, 3, 4, 5]));
  }

  // Marks a step and brings it into sight.
  show(k) {
    for (const row of this.host.querySelectorAll("tr.now")) row.classList.remove("now");
    const row = this.host.querySelector(`tr[data-step="${k}"]`);
    if (!row) return;
    row.classList.add("now");
    const box = this.host.getBoundingClientRect();
    const at = row.getBoundingClientRect();
    if (at.top < box.top + 28 || at.bottom > box.bottom) this.host.scrollTop += at.top - box.top - box.height / 2;
  }
}
