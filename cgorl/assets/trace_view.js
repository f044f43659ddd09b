// TraceView: the steps of an optimization, each before and after, with the curve of the cost, the ledger, and what else there was.
//
// The model holds picture (the first graph and the trace's steps), step, branch, branches, asks, guides and note. It is asked by
// messages, and answers by messages: "step" (two drawings as buffers), "candidates", and "film" (the steps of a branch from `since`
// on, with `left` of those asked for still to be done) to "film", "what_if" and "go_on"; "drop" changes `branches` alone; "why"
// is a sentence about what could not be done.
import { GraphCanvas } from "./graph_canvas.js";
import { unpack } from "./packed.js";
import { element, followTheme, hideStandIn, inks, kindOf, milliseconds, percent } from "./theme.js";
import { TraceBranches } from "./trace_branches.js";
import { TraceCandidates } from "./trace_candidates.js";
import { paintWhere, TraceCurve } from "./trace_curve.js";
import { Films } from "./trace_films.js";
import { chipOf, TraceLedger } from "./trace_ledger.js";

const PACE = 900;

function render({ model, el }) {
  const root = element("div", "cgorl cgorl-trace");
  el.append(root);
  const films = new Films(model);
  let playing = 0;
  let walk = null; // { ask, branch, left }: a branch on its way that was asked for here
  let asks = 0;

  const bar = element("div", "cgorl-bar");
  const button = (text, title, act) => {
    const made = element("button", "", text);
    made.title = made.ariaLabel = title;
    made.addEventListener("click", act);
    bar.append(made);
    return made;
  };
  button("|◀", "first step", () => go(0));
  button("◀", "step back (left arrow)", () => go(at() - 1));
  const play = button("▶", "play (space)", () => (playing ? stop() : start()));
  button("▷", "step on (right arrow)", () => go(at() + 1));
  const slider = element("input", "cgorl-slider");
  Object.assign(slider, { type: "range", min: 0, step: 1, ariaLabel: "step" });
  slider.addEventListener("input", () => go(Number(slider.value)));
  bar.append(slider);
  const headline = element("div", "cgorl-headline");
  headline.setAttribute("aria-live", "polite");

  const panes = element("div", "cgorl-panes");
  const pane = (title) => {
    const made = element("div", "cgorl-pane");
    const host = element("div", "cgorl-host");
    made.append(element("div", "cgorl-pane-title", title), host);
    panes.append(made);
    return host;
  };
  const stripHost = pane("where");
  stripHost.parentElement.classList.add("cgorl-where");
  const strip = element("canvas", "cgorl-strip");
  stripHost.append(strip);
  const before = new GraphCanvas(pane("before"), { label: "the matched part before the step", whole: true, bare: true });
  const after = new GraphCanvas(pane("after"), { label: "the same part after the step", whole: true, bare: true });
  before.colour = after.colour = "mark";
  const marks = element("div", "cgorl-legend");

  const curve = new TraceCurve(films, (k) => go(k));
  const ledger = new TraceLedger(films, (k) => go(k));
  const candidates = new TraceCandidates(films, model, (row, by, steps) => {
    tree.say("");
    walk = { ask: ++asks, branch: 0, left: steps };
    films.hold = true;
    model.send({ kind: "what_if", branch: way(), step: at(), rule: row.rule, nodes: row.nodes, by, steps, ask: walk.ask });
  });
  const tree = new TraceBranches(films, {
    choose: (number) => put("branch", number),
    drop: (number) => model.send({ kind: "drop", branch: number }),
    goOn: (number) => {
      walk = { ask: ++asks, branch: number, left: Number(candidates.steps.value) || 1 };
      further();
    },
    stop: () => {
      walk = null;
      show();
    },
    look: (number) => {
      curve.loud = number;
      curve.paint(way(), at());
    },
  });
  const lower = element("div", "cgorl-lower");
  lower.append(ledger.host, candidates.host);
  root.append(bar, headline, panes, marks, curve.canvas, lower, tree.host);
  root.addEventListener("keydown", (e) => {
    if (["INPUT", "CANVAS", "SELECT"].includes(e.target.tagName)) return;
    const keys = { ArrowLeft: () => go(at() - 1), ArrowRight: () => go(at() + 1), " ": () => play.click() };
    if (!keys[e.key] || (e.key === " " && e.target.tagName === "BUTTON")) return;
    e.preventDefault();
    e.stopPropagation();
    keys[e.key]();
  });

  const put = (trait, value) => {
    if (model.get(trait) === value) return;
    model.set(trait, value);
    model.save_changes();
  };
  const way = () => model.get("branch");
  const film = () => films.get(way());
  const count = () => (film() ? film().rows.length : 0);
  // The place after the last step is one to stand at where something can be done from there.
  const last = () => Math.max(0, count() - (model.get("asks") ? 0 : 1));
  const at = () => Math.max(0, Math.min(model.get("step"), last()));
  const go = (k) => put("step", Math.max(0, Math.min(last(), k)));

  function start() {
    if (at() >= count() - 1) go(0);
    play.textContent = "⏸";
    const next = () => {
      if (at() >= count() - 1) return stop();
      go(at() + 1);
      playing = setTimeout(next, PACE);
    };
    playing = setTimeout(next, PACE);
  }

  function stop() {
    clearTimeout(playing);
    playing = 0;
    play.textContent = "▶";
    show();
  }

  // Has the kernel do some more of a branch; it answers soon, so that it is free for others in between.
  const further = () => model.send({ kind: "go_on", branch: walk.branch, steps: walk.left, ask: walk.ask });

  let listed = null;
  function show() {
    const shown = film();
    if (!shown) return; // on its way
    const k = at();
    slider.max = last();
    slider.value = k;
    if (listed !== shown) ledger.list(shown);
    listed = shown;
    panes.hidden = marks.hidden = !count();
    heading(shown, k);
    const step = Math.min(k, count() - 1);
    const pair = films.pair(way(), step);
    films.pair(way(), step + 1); // so that a film runs without waiting
    if (pair) draw(pair);
    ledger.show(k);
    candidates.show(way(), k, Boolean(playing || walk));
    tree.show(way(), walk);
    paint();
  }

  function heading(shown, k) {
    const facts = (text) => headline.append(element("span", "cgorl-facts", text));
    const where = way() ? `branch ${way()}, ` : "";
    if (!count()) {
      headline.replaceChildren();
      return facts("no rewrite was made");
    }
    if (k === count()) {
      headline.replaceChildren(element("b", "", "the end"));
      return facts(`${where}after ${k} steps: ${milliseconds(shown.costs[0])} → ${milliseconds(shown.costs[k])}`);
    }
    const [rule, name, share] = shown.rows[k];
    headline.replaceChildren(chipOf(films.colour(rule)), element("b", "", rule), element("span", "", `at ${name}`));
    facts(`${where}step ${k + 1} of ${count()}: ${milliseconds(shown.costs[k])} → ${milliseconds(shown.costs[k + 1])}`);
    if (share !== null) facts(`measured share ${percent(share)}`);
  }

  function draw([one, other]) {
    before.show(one);
    after.show(other);
    const scale = Math.min(before.scale, after.scale); // one size for both, so that only what differs looks different
    before.middle(scale);
    after.middle(scale);
    marks.replaceChildren(...one.marks.map((kind) => kindOf(...kind)));
  }

  function paint() {
    const shown = film();
    if (!shown || !curve.canvas.parentElement) return;
    curve.paint(way(), at());
    const step = Math.min(at(), count() - 1);
    if (count() && strip.clientWidth) paintWhere(strip, films.first, shown.where[step], films.colour(shown.rows[step][0]), inks(root));
    root.dataset.shown = films.pair(way(), step) ? String(at()) : "";
    root.dataset.branch = String(way());
    root.dataset.walks = String(Boolean(walk));
  }

  const told = async (content, buffers) => {
    await films.told(content, buffers);
    const mine = walk && content.ask === walk.ask;
    if (content.kind === "candidates" || (content.kind === "why" && content.about === "candidates")) candidates.take(content);
    else if (content.kind === "why") {
      tree.say(content.text);
      if (["what_if", "go_on"].includes(content.about)) {
        walk = null;
        films.hold = false;
      }
    }
    if (content.kind === "film" && mine) {
      films.hold = false;
      Object.assign(walk, { branch: content.branch, left: content.left });
      if (content.left) further();
      else walk = null;
    }
    show();
  };
  const anew = () => {
    films.tidy();
    candidates.forget();
    show();
  };
  const heard = { "msg:custom": told, "change:step": show, "change:branch": show, "change:branches": anew };
  for (const [event, f] of Object.entries(heard)) model.on(event, f);
  const sizes = new ResizeObserver(paint);
  sizes.observe(curve.canvas);
  const reveal = hideStandIn(model);
  const end = followTheme(root, () => {
    before.draw();
    after.draw();
    paint();
  });
  unpack(model.get("picture")).then((whole) => {
    films.start(whole);
    show();
  });
  return () => {
    clearTimeout(playing);
    end();
    reveal();
    sizes.disconnect();
    for (const [event, f] of Object.entries(heard)) model.off(event, f);
    before.destroy();
    after.destroy();
  };
}

export default { render };
