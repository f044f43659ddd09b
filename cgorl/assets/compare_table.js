// CompareTable: methods on problems; sorted and filtered here, measured and compared by the kernel.
import { unpack } from "./packed.js";
import { element, followTheme, hideStandIn } from "./theme.js";

const [VALUE, TEXT, REST, MARK, IS_BEST, ABOUT] = [0, 1, 2, 3, 4, 5];
const KINDS = { csv: "text/csv", latex: "application/x-tex", markdown: "text/markdown", html: "text/html" };

function saveText(name, text, kind) {
  const link = element("a");
  link.href = URL.createObjectURL(new Blob([text], { type: kind }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

function render({ model, el }) {
  const root = element("div", "cgorl cgorl-compare");
  const bar = element("div", "cgorl-bar");
  const measure = element("select");
  measure.setAttribute("aria-label", "what is shown");
  const words = element("input");
  Object.assign(words, { type: "search", placeholder: "filter problems", value: model.get("find") });
  const exports = element("span", "cgorl-bar cgorl-facts");
  bar.append(measure, words, exports);
  const methods = element("div", "cgorl-bar cgorl-methods");
  const host = element("div", "cgorl-ledger cgorl-grid");
  const notes = element("ul", "cgorl-notes");
  root.append(bar, methods, host, notes);
  el.append(root);
  let data = null;
  const put = (values) => {
    for (const [trait, value] of Object.entries(values)) model.set(trait, value);
    model.save_changes();
  };

  function order() {
    const wanted = model.get("find").toLowerCase().split(/\s+/).filter(Boolean);
    const rows = data.problems.map((_, k) => k).filter((k) => wanted.every((w) => data.problems[k].toLowerCase().includes(w)));
    const sort = model.get("sort");
    const at = data.methods.indexOf(sort);
    const key = sort === "problem" ? (k) => data.problems[k] : sort === "before" ? (k) => data.before[k] : at < 0 ? null : (k) => data.cells[k][at]?.[VALUE] ?? null;
    if (!key) return rows;
    const sign = model.get("descending") ? -1 : 1;
    return rows.sort((a, b) => {
      const [x, y] = [key(a), key(b)];
      if (x === null || y === null) return (x === null) - (y === null);
      return x < y ? -sign : x > y ? sign : 0;
    });
  }

  function heading(name, title, number) {
    const made = element("th", number ? "number" : "");
    const button = element("button", "cgorl-sort", title);
    const now = model.get("sort") === name;
    const down = model.get("descending");
    made.setAttribute("aria-sort", now ? (down ? "descending" : "ascending") : "none");
    if (now) button.append(element("span", "", down ? " ▼" : " ▲"));
    button.title = `sort by ${title}`;
    button.addEventListener("click", () => put(now && down ? { sort: "", descending: false } : { sort: name, descending: now }));
    made.append(button);
    return made;
  }

  function show() {
    if (!data) return;
    measure.replaceChildren(...data.measures.map(([name, title]) => Object.assign(element("option", "", title), { value: name })));
    measure.value = model.get("measure");
    methods.replaceChildren();
    for (const name of data.all) {
      const label = element("label");
      const box = element("input");
      Object.assign(box, { type: "checkbox", checked: !model.get("hidden").includes(name) });
      box.addEventListener("change", () => {
        const hidden = model.get("hidden").filter((m) => m !== name);
        put({ hidden: box.checked ? hidden : [...hidden, name] });
      });
      label.append(box, name);
      methods.append(label);
    }
    const table = element("table");
    const head = element("tr");
    head.append(heading("problem", "problem", false), heading("before", "before, ms", true));
    for (const name of data.methods) head.append(heading(name, name, true));
    const thead = element("thead");
    thead.append(head);
    const body = element("tbody");
    for (const k of order()) {
      const row = element("tr");
      row.append(element("td", "", data.problems[k]), element("td", "number cgorl-name", Number(data.before[k].toPrecision(4)).toLocaleString("en", { maximumSignificantDigits: 4 })));
      for (const cell of data.cells[k]) {
        const made = element("td", "number");
        if (cell) {
          made.title = cell[ABOUT];
          made.classList.toggle("cgorl-best", cell[IS_BEST]);
          made.append(element(cell[IS_BEST] ? "b" : "span", "", cell[TEXT]), element("span", "cgorl-mark", cell[MARK]));
          if (cell[REST]) made.append(element("div", "cgorl-spread", cell[REST]));
        } else made.append(element("span", "cgorl-name", "–"));
        row.append(made);
      }
      body.append(row);
    }
    table.append(thead, body);
    host.replaceChildren(table);
    if (!body.children.length) host.append(element("p", "cgorl-facts", "no problem like that"));
    exports.replaceChildren(
      ...data.forms.map(([form, name]) => {
        const button = element("button", "", form === "latex" ? "LaTeX" : form === "markdown" ? "Markdown" : form.toUpperCase());
        button.title = `download what is shown as ${name}`;
        button.addEventListener("click", () => model.send({ kind: "export", form }));
        return button;
      })
    );
    notes.replaceChildren(...data.notes.map((note) => element("li", "", note)));
  }

  let asked = 0;
  const picture = async () => {
    const mine = ++asked;
    const found = await unpack(model.get("picture"));
    if (mine !== asked) return;
    data = found;
    show();
  };
  const told = (content) => {
    if (content.kind !== "export") return;
    const form = Object.keys(KINDS).find((f) => data.forms.some(([known, name]) => known === f && name === content.name));
    saveText(content.name, content.text, KINDS[form]);
  };
  measure.addEventListener("change", () => put({ measure: measure.value }));
  words.addEventListener("input", () => put({ find: words.value }));
  words.addEventListener("keydown", (e) => e.stopPropagation());
  const traits = ["find", "sort", "descending"];
  for (const trait of traits) model.on(`change:${trait}`, show);
  model.on("change:picture", picture);
  model.on("msg:custom", told);
  const reveal = hideStandIn(model);
  const end = followTheme(root, () => {});
  picture();
  return () => {
    end();
    reveal();
    for (const trait of traits) model.off(`change:${trait}`, show);
    model.off("change:picture", picture);
    model.off("msg:custom", told);
  };
}

export default { render };
