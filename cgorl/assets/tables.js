// A table: titles that stay in sight, and rows of plain texts or made elsewhere; numbers to the right.
import { element } from "./theme.js";

// `rows` are arrays of texts, or rows (<tr>) as they are; `numbers` are the columns that hold numbers.
export function tableOf(head, rows, numbers = []) {
  const side = (k) => (numbers.includes(k) ? "number" : "");
  const made = element("table");
  const top = element("tr");
  head.forEach((title, k) => top.append(element("th", side(k), title)));
  const thead = element("thead");
  thead.append(top);
  const body = element("tbody");
  for (const cells of rows) {
    if (!Array.isArray(cells)) {
      body.append(cells);
      continue;
    }
    const row = element("tr");
    cells.forEach((cell, k) => row.append(element("td", side(k), cell)));
    body.append(row);
  }
  made.append(thead, body);
  return made;
}
