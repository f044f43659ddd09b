// RuleBrowser: a list of rules, the chosen one as a picture and in words, and where it matches in a model, or why not.
import { GraphCanvas } from "./graph_canvas.js";
import { unpack } from "./packed.js";
import { element, followTheme, hideStandIn, milliseconds } from "./theme.js";

function bytes(n) {
  const [size, unit] = Math.abs(n) >= 1e6 ? [n / 1e6, "MB"] : Math.abs(n) >= 1e3 ? [n / 1e3, "kB"] : [n, "B"];
  return `${n > 0 ? "+" : "−"}${Number(Math.abs(size).toPrecision(3))} ${unit}`;
}

function render({ model, el }) {
  const root = element("div", "cgorl cgorl-rules");
  const side = element("div", "cgorl-side");
  const words = element("input");
  Object.assign(words, { type: "search", placeholder: "search name, tag or purpose" });
  const only = element("label");
  const onlyBox = element("input");
  onlyBox.type = "checkbox";
  only.append(onlyBox, "only those that match in the model");
  const list = element("div", "cgorl-list");
  list.setAttribute("role", "listbox");
  list.tabIndex = 0;
  side.append(words, only, list);
  const main = element("div", "cgorl-rule");
  const head = element("div", "cgorl-headline");
  const paper = element("div", "cgorl-paper");
  const drawing = element("img");
  paper.append(drawing);
  const terms = element("dl", "cgorl-terms");
  const proof = element("div", "cgorl-bar");
  const verify = element("button", "", "prove it on random graphs");
  const proven = element("span", "");
  proven.setAttribute("aria-live", "polite");
  proof.append(verify, proven);
  const text = element("pre");
  const more = element("details");
  more.append(element("summary", "", "as text"), text);
  main.append(head, paper, terms, proof, more);
  const upper = element("div", "cgorl-upper");
  upper.append(side, main);
  root.append(element("div", "cgorl-facts", model.get("title")), upper);
  el.append(root);

  let rows = [];
  let priced = false;
  let shown = null; // what is known of the rule that is shown
  const known = new Map();

  let canvas = null;
  let places = null;
  let why = null;
  const drawn = model.get("picture");
  if (drawn.byteLength) {
    const lower = element("div", "cgorl-lower");
    const host = element("div", "cgorl-host");
    places = element("div", "cgorl-ledger");
    lower.append(host, places);
    why = element("div", "cgorl-why", "click a node to see why the rule does not match there");
    why.setAttribute("aria-live", "polite");
    root.append(why, lower);
    canvas = new GraphCanvas(host, {
      label: "the model: choose a node to see why the rule does not match there",
      pick: (k) => {
        if (k < 0 || !shown) return;
        why.textContent = "looking ...";
        model.send({ kind: "why", rule: shown.rule, box: k });
      },
    });
    unpack(drawn).then((scene) => {
      canvas.show(scene);
      mark();
    });
  } else only.hidden = true;

  const short = (row) => (row[3] ? `${row[3]}×` : "");
  function fill() {
    const wanted = words.value.trim().toLowerCase();
    list.replaceChildren();
    for (const row of rows) {
      if (wanted && !`${row[0]} ${row[1]} ${row[2]}`.toLowerCase().includes(wanted)) continue;
      if (onlyBox.checked && !row[3] && row[0] !== model.get("rule")) continue;
      const item = element("div", "cgorl-item");
      item.setAttribute("role", "option");
      item.dataset.rule = row[0];
      item.title = row[2];
      item.append(element("span", "", row[0]), element("span", "cgorl-hits", short(row)));
      item.addEventListener("click", () => choose(row[0]));
      list.append(item);
    }
    if (!list.children.length) list.append(element("p", "cgorl-facts", "no rule like that"));
    current(false);
  }

  function current(scroll) {
    for (const item of list.children) {
      const now = item.dataset.rule === model.get("rule");
      item.classList.toggle("now", now);
      item.setAttribute("aria-selected", String(now));
      if (now && scroll) item.scrollIntoView({ block: "nearest" });
    }
  }

  function choose(name) {
    model.set("rule", name);
    model.save_changes();
  }

  function show() {
    const name = model.get("rule");
    current(true);
    shown = known.get(name) || null;
    if (!shown) {
      if (name) model.send({ kind: "rule", rule: name });
      return;
    }
    head.replaceChildren(element("b", "", shown.rule), element("span", "", shown.doc));
    head.append(element("span", "cgorl-facts", `${shown.tags.join(", ")}; from: ${shown.provenance}`));
    picture();
    terms.replaceChildren();
    for (const [condition, says] of shown.conditions) terms.append(element("dt", "", condition), element("dd", "", says));
    if (!shown.conditions.length) terms.append(element("dt", "", "no condition"));
    text.textContent = shown.text;
    verify.disabled = false;
    proven.textContent = shown.proof || "";
    if (canvas) {
      why.textContent = "click a node to see why the rule does not match there";
      listPlaces();
      mark();
    }
  }

  // The picture has colours for dark paper behind a question to the browser, which is answered here as the page is.
  function picture() {
    if (!shown) return;
    const answer = root.classList.contains("cgorl-dark") ? "min-width:0" : "max-width:0";
    const svg = shown.svg.replaceAll("prefers-color-scheme:dark", answer);
    drawing.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
    drawing.alt = `${shown.rule}: what it looks for, and what it puts there`;
  }

  function listPlaces() {
    const table = element("table");
    const top = element("tr");
    for (const title of ["where it matches", priced ? "gain" : "", "weights"]) top.append(element("th", title === "where it matches" ? "" : "number", title));
    const thead = element("thead");
    thead.append(top);
    const body = element("tbody");
    for (const [name, gain, growth, boxes] of shown.matches) {
      const row = element("tr");
      row.append(element("td", "cgorl-where-name", name), element("td", "number", priced ? milliseconds(gain) : ""));
      row.append(element("td", "number", growth ? bytes(growth) : ""));
      row.addEventListener("click", () => {
        canvas.found = new Set(boxes);
        canvas.selected = boxes[0];
        canvas.centre(boxes[0]);
        canvas.draw();
      });
      body.append(row);
    }
    table.append(thead, body);
    const total = rows.find((r) => r[0] === shown.rule)?.[3] ?? 0;
    const told = total ? (total > shown.matches.length ? `the first ${shown.matches.length} of ${total} matches` : "") : "it matches nowhere in this model";
    places.replaceChildren(table, element("p", "cgorl-facts", told));
  }

  function mark() {
    if (!canvas?.scene || !shown) return;
    const all = new Set(shown.matches.flatMap((m) => m[3]));
    canvas.found = all.size ? all : null;
    canvas.draw();
  }

  const told = (content) => {
    if (content.kind === "rule") {
      known.set(content.rule, content);
      if (content.rule === model.get("rule")) show();
    }
    if (content.kind === "verify") {
      const about = known.get(content.rule);
      about.proof = content.ok ? `proven: ${content.text}` : `NOT PROVEN: ${content.text}`;
      if (shown === about) {
        proven.textContent = about.proof;
        verify.disabled = false;
      }
    }
    if (content.kind === "why" && content.rule === shown?.rule) {
      why.replaceChildren(element("b", "", `${content.rule} at ${content.node}: `), content.why || "it matches");
      if (content.others.length) why.append(element("span", "cgorl-facts", ` (other rules that match here: ${content.others.join(", ")})`));
    }
  };
  verify.addEventListener("click", () => {
    verify.disabled = true;
    proven.textContent = "proving ...";
    model.send({ kind: "verify", rule: shown.rule });
  });
  words.addEventListener("input", fill);
  words.addEventListener("keydown", (e) => e.stopPropagation());
  onlyBox.addEventListener("change", fill);
  list.addEventListener("keydown", (e) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (!step) return;
    e.preventDefault();
    e.stopPropagation();
    const items = [...list.querySelectorAll(".cgorl-item")];
    const at = items.findIndex((i) => i.dataset.rule === model.get("rule"));
    const next = items[Math.max(0, Math.min(items.length - 1, at + step))];
    if (next) choose(next.dataset.rule);
  });
  model.on("msg:custom", told);
  model.on("change:rule", show);
  unpack(model.get("listing")).then((found) => {
    ({ rows, priced } = found);
    onlyBox.checked = rows.some((row) => row[3]);
    fill();
    show();
  });
  const reveal = hideStandIn(model);
  const end = followTheme(root, () => {
    picture();
    canvas?.draw();
  });
  return () => {
    end();
    reveal();
    model.off("msg:custom", told);
    model.off("change:rule", show);
    canvas?.destroy();
  };
}

export default { render };
