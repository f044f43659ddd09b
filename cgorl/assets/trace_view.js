// TraceView: the steps of an optimization, each before and after, with the curve of the cost, the ledger and what else there was.
import { GraphCanvas } from "./graph_canvas.js";
import { paintStrip } from "./graph_paint.js";
import { unpack } from "./packed.js";
import { element, followTheme, hideStandIn, inks, kindOf, milliseconds, percent } from "./theme.js";

const RULE_COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8A6D3B", "#6A5ACD"];
const PACE = 900;
const KEPT = 60;
const NUMBERS = new Set(["cost", "of the first", "measured", "chance"]);

const ruleColour = (k) => RULE_COLOURS[k % RULE_COLOURS.length];
const signed = (ms) => `${ms > 0 ? "−" : ms < 0 ? "+" : "±"}${milliseconds(Math.abs(ms))}`;

function render({ model, el }) {
  const root = element("div", "cgorl cgorl-trace");
  el.append(root);
  let film = null;
  let playing = 0;
  const scenes = new Map(); // step -> [before, after]
  const others = new Map(); // step -> candidates

  const bar = element("div", "cgorl-bar");
  const button = (text, title, act) => {
    const made = element("button", "", text);
    made.title = made.ariaLabel = title;
    made.addEventListener("click", act);
    bar.append(made);
    return made;
  };
  button("|◀", "first step", () => go(0));
  button("◀", "step back (left arrow)", () => go(model.get("step") - 1));
  const play = button("▶", "play (space)", () => (playing ? stop() : start()));
  button("▷", "step on (right arrow)", () => go(model.get("step") + 1));
  const slider = element("input", "cgorl-slider");
  Object.assign(slider, { type: "range", min: 0, step: 1, ariaLabel: "step" });
  slider.addEventListener("input", () => go(Number(slider.value)));
  const headline = element("div", "cgorl-headline");
  headline.setAttribute("aria-live", "polite");
  bar.append(slider);

  const panes = element("div", "cgorl-panes");
  const pane = (title) => {
    const made = element("div", "cgorl-pane");
    const head = element("div", "cgorl-pane-title", title);
    const host = element("div", "cgorl-host");
    made.append(head, host);
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

  const curve = element("canvas", "cgorl-curve");
  curve.setAttribute("role", "img");
  curve.addEventListener("pointerdown", (e) => go(stepAt(e.offsetX)));
  const lower = element("div", "cgorl-lower");
  const ledger = element("div", "cgorl-ledger");
  const candidates = element("div", "cgorl-candidates");
  candidates.hidden = !model.get("asks");
  lower.append(ledger, candidates);
  const marks = element("div", "cgorl-legend");
  root.append(bar, headline, panes, marks, curve, lower);
  root.addEventListener("keydown", (e) => {
    if (e.target.tagName === "INPUT" || e.target.tagName === "CANVAS") return;
    const keys = { ArrowLeft: () => go(model.get("step") - 1), ArrowRight: () => go(model.get("step") + 1), " ": () => play.click() };
    if (!keys[e.key] || (e.key === " " && e.target.tagName === "BUTTON")) return;
    e.preventDefault();
    e.stopPropagation();
    keys[e.key]();
  });

  const count = () => (film ? film.rows.length : 0);

  function go(k) {
    const to = Math.max(0, Math.min(count() - 1, k));
    if (to === model.get("step")) return;
    model.set("step", to);
    model.save_changes();
  }

  function start() {
    if (model.get("step") >= count() - 1) go(0);
    play.textContent = "⏸";
    const next = () => {
      if (model.get("step") >= count() - 1) return stop();
      go(model.get("step") + 1);
      playing = setTimeout(next, PACE);
    };
    playing = setTimeout(next, PACE);
  }

  function stop() {
    clearTimeout(playing);
    playing = 0;
    play.textContent = "▶";
  }

  const ask = (k) => {
    if (k >= 0 && k < count() && !scenes.has(k)) {
      scenes.set(k, null);
      model.send({ kind: "step", step: k });
    }
  };

  function show() {
    if (!film) return;
    if (!count()) {
      headline.textContent = "no rewrite was made";
      return;
    }
    const k = model.get("step");
    const [rule, name, share] = film.rows[k];
    slider.max = count() - 1;
    slider.value = k;
    headline.replaceChildren(chip(rule), element("b", "", film.rules[rule]), element("span", "", `at ${name}`));
    headline.append(element("span", "cgorl-facts", `step ${k + 1} of ${count()}: ${milliseconds(film.costs[k])} → ${milliseconds(film.costs[k + 1])}`));
    if (share !== null) headline.append(element("span", "cgorl-facts", `measured share ${percent(share)}`));
    ask(k);
    ask(k + 1); // so that a film runs without waiting
    const pair = scenes.get(k);
    if (pair) {
      before.show(pair[0]);
      after.show(pair[1]);
      const scale = Math.min(before.scale, after.scale); // one size for both, so that only what differs looks different
      before.middle(scale);
      after.middle(scale);
      legendOf(pair[0]);
    }
    for (const row of ledger.querySelectorAll("tr.now")) row.classList.remove("now");
    const row = ledger.querySelector(`tr[data-step="${k}"]`);
    row.classList.add("now");
    const box = ledger.getBoundingClientRect();
    const at = row.getBoundingClientRect();
    if (at.top < box.top + 28 || at.bottom > box.bottom) ledger.scrollTop += at.top - box.top - box.height / 2;
    showOthers(k);
    paint();
  }

  function chip(rule) {
    const made = element("i", "cgorl-chip");
    made.style.background = ruleColour(rule);
    return made;
  }

  function legendOf(scene) {
    marks.replaceChildren(...scene.marks.map((kind) => kindOf(...kind)));
  }

  function table(head, rows) {
    const made = element("table");
    const top = element("tr");
    for (const text of head) top.append(element("th", NUMBERS.has(text) ? "number" : "", text));
    const thead = element("thead");
    thead.append(top);
    const body = element("tbody");
    body.append(...rows);
    made.append(thead, body);
    return made;
  }

  function list() {
    const first = film.costs[0];
    const measured = film.rows.some((r) => r[2] !== null);
    const rows = film.rows.map(([rule, name, share], k) => {
      const row = element("tr");
      row.dataset.step = k;
      const named = element("td");
      named.append(chip(rule), film.rules[rule]);
      const gain = film.costs[k] - film.costs[k + 1];
      row.append(element("td", "number", String(k + 1)), named, element("td", "cgorl-where-name", name));
      row.append(element("td", "number", signed(gain)), element("td", "number", percent(film.costs[k + 1] / first)));
      if (measured) row.append(element("td", "number", share === null ? "" : percent(share)));
      row.addEventListener("click", () => go(k));
      return row;
    });
    ledger.replaceChildren(table(["", "rule", "where", "cost", "of the first", ...(measured ? ["measured"] : [])], rows));
  }

  function showOthers(k) {
    if (!model.get("asks")) return;
    const found = others.get(k);
    if (found === undefined) {
      if (playing) return; // asked for where the film stands still
      others.set(k, null);
      model.send({ kind: "candidates", step: k });
    }
    if (!found) return candidates.replaceChildren(element("p", "", "looking at what else there is ..."));
    if (found.why) return candidates.replaceChildren(element("p", "", found.why));
    const policy = found.by === "policy";
    const rows = found.rows.map((r) => {
      const row = element("tr", r.taken ? "now" : "");
      row.append(element("td", "number", String(r.rank)), element("td", "", r.rule), element("td", "cgorl-where-name", r.at));
      row.append(element("td", "number", signed(r.gain_ms)));
      if (policy) row.append(element("td", "number", percent(r.chance)));
      return row;
    });
    const told = policy
      ? `${found.count} candidates as the policy sees them: stops with ${percent(found.stop)}, value ${found.value.toFixed(2)}, curiosity ${found.curiosity.toFixed(2)} (in its own scale)`
      : `${found.count} candidates, the largest gain first`;
    candidates.replaceChildren(element("p", "", told), table(["", "rule", "where", "cost", ...(policy ? ["chance"] : [])], rows));
  }

  // ---------------------------------------------------------------- pictures of all steps
  function sized(canvas) {
    const dpr = window.devicePixelRatio || 1;
    const [w, h] = [canvas.clientWidth, canvas.clientHeight];
    canvas.width = w * dpr;
    canvas.height = h * dpr;
    const g = canvas.getContext("2d");
    g.scale(dpr, dpr);
    return [g, w, h];
  }

  const LEFT = 70;
  const x = (k) => LEFT + ((curve.clientWidth - LEFT - 12) * k) / Math.max(1, count());
  const stepAt = (px) => Math.round(((px - LEFT) / Math.max(1, curve.clientWidth - LEFT - 12)) * count() - 0.5);

  function paint() {
    if (!film || !count() || !curve.clientWidth) return;
    const ink = inks(root);
    const [g, w, h] = sized(curve);
    const [low, high] = [Math.min(...film.costs), Math.max(...film.costs)];
    const y = (ms) => 12 + ((h - 24) * (high - ms)) / (high - low || 1);
    g.fillStyle = ink.paper;
    g.fillRect(0, 0, w, h);
    g.font = "11px system-ui, sans-serif";
    g.textBaseline = "middle";
    for (const ms of [high, low]) {
      g.strokeStyle = ink.dark ? "#3a3a3a" : "#dddddd";
      g.beginPath();
      g.moveTo(LEFT, y(ms));
      g.lineTo(w - 10, y(ms));
      g.stroke();
      g.fillStyle = ink.faint;
      g.fillText(milliseconds(ms), 6, y(ms));
    }
    g.lineWidth = 2.5;
    const now = model.get("step");
    g.fillStyle = ink.accent;
    g.globalAlpha = 0.18;
    g.fillRect(x(now), 0, Math.max(2, x(now + 1) - x(now)), h);
    g.globalAlpha = 1;
    film.rows.forEach(([rule], k) => {
      g.strokeStyle = ruleColour(rule);
      g.beginPath();
      g.moveTo(x(k), y(film.costs[k]));
      g.lineTo(x(k + 1), y(film.costs[k + 1]));
      g.stroke();
    });
    g.fillStyle = ink.accent;
    g.beginPath();
    g.arc(x(now + 1), y(film.costs[now + 1]), 4, 0, 7);
    g.fill();
    curve.setAttribute("aria-label", `cost from ${milliseconds(film.costs[0])} to ${milliseconds(film.costs.at(-1))} in ${count()} steps`);
    const [s, sw, sh] = sized(strip);
    paintStrip(s, film, sw, sh, ink, new Set(film.where[now]), ruleColour(film.rows[now][0]));
    root.dataset.shown = scenes.get(now) ? String(now) : "";
  }

  const told = async (content, buffers) => {
    if (content.kind === "step") {
      const pair = await Promise.all(buffers.map(unpack));
      scenes.set(content.step, pair);
      for (const k of scenes.keys()) {
        if (scenes.size <= KEPT) break;
        if (k !== model.get("step")) scenes.delete(k);
      }
    }
    if (content.kind === "candidates") others.set(content.step, content);
    if (content.step === model.get("step")) show();
  };
  model.on("msg:custom", told);
  model.on("change:step", show);
  const sizes = new ResizeObserver(paint);
  sizes.observe(curve);
  const reveal = hideStandIn(model);
  const end = followTheme(root, () => {
    before.draw();
    after.draw();
    paint();
  });
  unpack(model.get("picture")).then((made) => {
    film = made;
    list();
    show();
  });
  return () => {
    stop();
    end();
    reveal();
    sizes.disconnect();
    model.off("msg:custom", told);
    model.off("change:step", show);
    before.destroy();
    after.destroy();
  };
}

export default { render };
