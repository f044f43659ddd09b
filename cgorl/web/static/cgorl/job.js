// A job's page: how it goes, as it does, and then what came of it.
import { milliseconds, percent } from "../assets/theme.js";
import { curves } from "./curves.js";
import { pause, renew, say } from "./page.js";
import { drawResult } from "./result.js";

const whole = (n) => n.toLocaleString("en");
const clock = (seconds) => `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;
const upper = (text) => text[0].toUpperCase() + text.slice(1);

function ordinal(n) {
  const ending = n % 100 > 10 && n % 100 < 14 ? "th" : { 1: "st", 2: "nd", 3: "rd" }[n % 10] || "th";
  return `${n}${ending}`;
}

class Live {
  constructor(root) {
    this.root = root;
    this.parts = Object.fromEntries(["now", "share", "best", "expansions", "evaluations", "elapsed", "course", "stop"].map((id) => [id, document.getElementById(id)]));
    this.began = root.dataset.started ? Date.parse(root.dataset.started) : null;
    this.draw = null;
    this.said = "";
    this.tick = setInterval(() => this.time(), 1000);
    this.time();
  }

  time() {
    if (this.began) this.parts.elapsed.textContent = clock(Math.max(0, (Date.now() - this.began) / 1000));
  }

  show(told) {
    const { now, share, best, expansions, evaluations, stop } = this.parts;
    const waits = told.state === "queued";
    if (!waits && !this.began) this.began = Date.now();
    const stage = told.stage || "running";
    const text = waits ? `${ordinal(told.position)} in the queue` : told.stopping ? `Stopping with the best so far: ${stage}` : upper(stage);
    now.textContent = text;
    if (text !== this.said) say(text);
    this.said = text;
    const steps = [...this.root.querySelectorAll(".steps li")];
    const at = steps.findIndex((li) => li.dataset.of.split("|").includes(told.stage));
    steps.forEach((li, k) => {
      li.className = k < at ? "done" : k === at ? "now" : "later";
      if (k === at) li.setAttribute("aria-current", "step");
      else li.removeAttribute("aria-current");
    });
    if (told.share === null) share.removeAttribute("value");
    else share.value = told.share;
    stop.disabled = told.stopping;
    stop.textContent = waits ? "Cancel" : "Stop and keep the best so far";
    expansions.textContent = whole(told.expansions);
    evaluations.textContent = whole(told.evaluations);
    if (told.points.length) {
      const [first, last] = [told.points[0][1], told.points.at(-1)[1]];
      best.textContent = milliseconds(last) + (last < first ? ` (−${percent(1 - last / first)})` : "");
      const curve = [{ label: "best so far", points: told.points }];
      if (this.draw) this.draw(curve);
      else this.draw = curves(this.parts.course, curve);
    }
    document.title = `${told.share ? `${percent(told.share)} ` : ""}${text}: ${this.root.dataset.name}`;
  }

  end() {
    clearInterval(this.tick);
  }
}

/** What is told of the job, whenever it changes, to its end: by events, or where those do not come through, by asking. */
function listen(root, show) {
  return new Promise((ended) => {
    const heard = (told) => {
      if (told.state !== "deleted") show(told);
      if (told.ended) ended(told);
      return told.ended;
    };
    const ask = async () => {
      for (;;) {
        await pause(2);
        try {
          const answer = await fetch(root.dataset.poll);
          if (answer.status === 404 || answer.status === 401) return ended({ state: "deleted" });
          if (answer.ok && heard(await answer.json())) return;
        } catch {
          document.getElementById("now").textContent = "The service does not answer: trying again";
        }
      }
    };
    const events = new EventSource(root.dataset.events);
    events.addEventListener("job", (e) => heard(JSON.parse(e.data)) && events.close());
    events.addEventListener("error", () => {
      if (events.readyState === EventSource.CLOSED) ask();
      else document.getElementById("now").textContent = "The service does not answer: trying again"; // as the browser does by itself
    });
    addEventListener("pagehide", () => events.close());
  });
}

async function start() {
  const root = document.getElementById("live");
  if (root) {
    const live = new Live(root);
    const told = await listen(root, (t) => live.show(t));
    live.end();
    if (told.state === "deleted") return location.reload();
    await renew();
    say(document.querySelector("#verdict h2")?.textContent || "It has ended.");
  }
  drawResult(document.getElementById("main"));
}

start();
