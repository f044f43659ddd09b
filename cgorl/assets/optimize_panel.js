// OptimizePanel: a form, the work as it goes, and what came of it.
import { LineChart } from "./line_chart.js";
import { unpack } from "./packed.js";
import { megabytes, Pieces } from "./pieces.js";
import { tableOf } from "./tables.js";
import { element, followTheme, hideStandIn } from "./theme.js";

const STAGES = {
  start: "starting a process",
  load: "reading the model",
  simplify: "cleaning up",
  price: "pricing",
  search: "searching",
  prove: "proving each rewrite",
  compare: "comparing the whole with the original",
  gate: "measuring",
  save: "writing",
};
const LARGE = 10_000_000;

function render({ model, el }) {
  const root = element("div", "cgorl cgorl-panel");
  el.append(root);
  const menus = model.get("menus");
  const [pieceSize, largest] = menus.limits;
  const pieces = new Pieces(model, pieceSize);
  const inputs = {};
  const field = (bar, title, control, about) => {
    const made = element("label", "cgorl-field");
    made.title = about || "";
    control.setAttribute("aria-label", title);
    made.append(element("span", "cgorl-name", title), control);
    bar.append(made);
    return control;
  };
  const choose = (names, empty) => {
    const made = element("select");
    if (empty) made.append(Object.assign(element("option", "", empty), { value: "" }));
    for (const name of names) made.append(Object.assign(element("option", "", name), { value: name }));
    return made;
  };

  const first = element("div", "cgorl-form");
  const zoo = field(first, "model of the zoo", choose(menus.zoo, "(a file)"));
  const path = field(first, "or the path of an ONNX file", element("input"), "as the kernel's machine has it");
  Object.assign(path, { type: "text", placeholder: "model.onnx", spellcheck: false });
  path.parentElement.classList.add("cgorl-wide");
  const upload = element("button", "", "upload …");
  upload.title = `an ONNX file, with the files of its weights if it has some; up to ${megabytes(largest)}; or drop them here`;
  const picker = element("input");
  Object.assign(picker, { type: "file", multiple: true, hidden: true });
  first.append(upload, picker);
  const second = element("div", "cgorl-form");
  for (const name of Object.keys(menus.about)) inputs[name] = field(second, name, choose(menus[name]), menus.about[name]);
  inputs.seconds = field(second, "seconds", element("input"), "for the search; the proof comes after it");
  Object.assign(inputs.seconds, { type: "number", min: 0, step: 1 });
  inputs.sizes = field(second, "sizes of open dims", element("input"), "batch=8, seq=128, or 1 for all");
  Object.assign(inputs.sizes, { type: "text", placeholder: "batch=8, seq=128" });
  inputs.policy = field(second, "policy of the agent", element("input"), "a file that scripts/train.py wrote, as the kernel's machine has it");
  Object.assign(inputs.policy, { type: "text", placeholder: "the one that comes along", spellcheck: false });
  inputs.policy.parentElement.classList.add("cgorl-wide");

  const bar = element("div", "cgorl-bar");
  const start = element("button", "cgorl-primary", "optimize");
  const stop = element("button", "", "stop");
  const progress = element("progress");
  progress.max = 1;
  const text = element("span", "cgorl-told", "");
  text.setAttribute("aria-live", "polite");
  bar.append(start, stop, progress, text);
  const wrong = element("div", "cgorl-wrong");
  wrong.setAttribute("role", "alert");
  wrong.hidden = true;
  const host = element("div", "cgorl-host cgorl-course");
  const chart = new LineChart(host, "estimated cost of the best so far");
  const ended = element("div", "cgorl-result");
  const film = element("div", "cgorl-film");
  root.append(first, second, bar, wrong, host, ended, film);

  const chosen = () => path.value.trim() || zoo.value;
  const fill = () => {
    const form = model.get("form");
    zoo.value = menus.zoo.includes(form.model) ? form.model : "";
    path.value = zoo.value ? "" : form.model;
    for (const [name, input] of Object.entries(inputs)) input.value = form[name];
  };
  zoo.addEventListener("change", () => zoo.value && (path.value = ""));
  path.addEventListener("input", () => path.value.trim() && (zoo.value = ""));
  for (const input of [path, inputs.seconds, inputs.sizes, inputs.policy]) input.addEventListener("keydown", (e) => e.stopPropagation());

  const say = (sentence) => {
    wrong.textContent = sentence;
    wrong.hidden = !sentence;
  };

  let moving = false; // a file is on its way
  async function move(work) {
    moving = true;
    say("");
    progress.hidden = false;
    state();
    try {
      await work((share) => (progress.value = share));
    } catch (e) {
      say(e.message);
    }
    moving = false;
    state();
  }

  const send = (files) => {
    const large = files.find((f) => f.size > largest);
    if (large) return say(`'${large.name}' has ${megabytes(large.size)}: files above ${megabytes(largest)} are given by their path`);
    return move(async (tell) => {
      const places = [];
      for (const file of files) {
        const count = Math.ceil(file.size / pieceSize);
        const told = file.size > LARGE ? ` in ${count} pieces (if it lies on the kernel's machine, its path is quicker)` : "";
        text.textContent = `uploading ${file.name}, ${megabytes(file.size)}${told}`;
        places.push(await pieces.upload(file, tell));
      }
      zoo.value = "";
      path.value = places.find((p) => p.toLowerCase().endsWith(".onnx")) || places[0];
    });
  };
  upload.addEventListener("click", () => picker.click());
  picker.addEventListener("change", () => {
    if (picker.files.length) send([...picker.files]);
    picker.value = "";
  });
  root.addEventListener("dragover", (e) => e.preventDefault());
  root.addEventListener("drop", (e) => {
    e.preventDefault();
    e.stopPropagation();
    if (e.dataTransfer.files.length && !start.disabled) send([...e.dataTransfer.files]);
  });

  start.addEventListener("click", () => {
    say("");
    const form = { model: chosen() };
    for (const [name, input] of Object.entries(inputs)) form[name] = input.value;
    if (inputs.seconds.value !== "") form.seconds = Number(inputs.seconds.value);
    model.send({ kind: "start", form });
  });
  stop.addEventListener("click", () => model.send({ kind: model.get("state").at === "stopping" ? "drop" : "stop" }));

  function state() {
    const now = model.get("state");
    const works = now.at === "running" || now.at === "stopping";
    root.dataset.at = moving ? "moving" : now.at;
    for (const control of [start, upload, zoo, path, ...Object.values(inputs)]) control.disabled = works || moving;
    inputs.device.disabled ||= inputs.cost.value === "measured";
    inputs.policy.parentElement.hidden = inputs.search.value !== "agent";
    stop.hidden = !works;
    stop.textContent = now.at === "stopping" ? "drop it" : "stop";
    stop.title = now.at === "stopping" ? "ends the proof too: nothing is kept" : "the best so far is proven and kept";
    progress.hidden = !works && !moving;
    if (moving) return;
    if (works) {
      const what = STAGES[now.stage] || now.stage || "";
      text.textContent = [now.at === "stopping" ? "stopping with the best so far:" : "", what, now.text].filter(Boolean).join(" ");
      if (now.share === null || now.share === undefined) progress.removeAttribute("value");
      else progress.value = now.share;
    } else text.textContent = now.at === "ready" ? "" : now.at === "failed" ? "it did not work out" : "done";
    if (now.at === "failed") say(now.text);
  }
  for (const input of [inputs.cost, inputs.search]) input.addEventListener("change", state);

  let asked = 0;
  const picture = async () => {
    const mine = ++asked;
    const bytes = model.get("picture");
    host.hidden = !bytes.byteLength;
    if (host.hidden) return;
    const found = await unpack(bytes);
    if (mine === asked) chart.show(found);
  };

  function result() {
    ended.replaceChildren();
    const told = model.get("result");
    if (!told.headline) return;
    ended.append(element("div", "cgorl-headline", told.headline), element("div", "cgorl-proof", `proof: ${told.proven}`));
    const pair = element("div", "cgorl-lower");
    const left = element("div", "cgorl-ledger");
    left.append(tableOf(["", "before", "after", "change"], told.rows, [1, 2, 3]));
    pair.append(left);
    if (told.operators.length) {
      const right = element("div", "cgorl-ledger");
      right.append(tableOf(["operator, estimated ms", "before", "after", "change"], told.operators, [1, 2, 3]));
      pair.append(right);
    }
    ended.append(pair);
    const taken = element("div", "cgorl-bar");
    told.files.forEach(([name, size], k) => {
      const button = element("button", k ? "" : "cgorl-primary", `download ${name} (${megabytes(size)})`);
      if (size > largest) {
        button.disabled = true;
        button.title = `files above ${megabytes(largest)} do not go through a browser: it lies in ${told.folder}`;
      }
      button.addEventListener("click", () => move((tell) => {
        text.textContent = `downloading ${name}`;
        return pieces.download(k, name, size, tell);
      }));
      taken.append(button);
    });
    if (told.rewrites) {
      const open = element("button", "", `open ${told.rewrites === 1 ? "the rewrite" : `the ${told.rewrites} rewrites`} in TraceView`);
      open.addEventListener("click", () => {
        open.disabled = true;
        model.send({ kind: "film" });
      });
      taken.append(open);
    }
    const more = element("details");
    more.append(element("summary", "", "the whole account"), element("pre", "", told.lines.join("\n")));
    ended.append(taken, more, element("div", "cgorl-name", `kept in ${told.folder}`));
  }

  const child = async () => {
    film.replaceChildren();
    const id = model.get("child");
    if (!id) return;
    const view = await model.widget_manager.create_view(await model.widget_manager.get_model(id));
    film.replaceChildren(view.el);
  };
  const told = (content, buffers) => {
    if (pieces.told(content, buffers)) return;
    if (content.kind === "why") say(content.text);
  };
  const refill = () => {
    fill();
    state();
  };
  const heard = { "change:state": state, "change:picture": picture, "change:result": result, "change:child": child, "change:form": refill, "msg:custom": told };
  for (const [event, f] of Object.entries(heard)) model.on(event, f);
  const reveal = hideStandIn(model);
  const end = followTheme(root, () => chart.draw());
  fill();
  state();
  picture();
  result();
  child();
  return () => {
    end();
    reveal();
    for (const [event, f] of Object.entries(heard)) model.off(event, f);
    chart.destroy();
  };
}

export default { render };
