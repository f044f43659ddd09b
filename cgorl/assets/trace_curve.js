// The cost over the steps, coloured by rule, other branches behind it; and where in the network a step is.
import { paintStrip } from "./graph_paint.js";
import { element, inks, milliseconds } from "./theme.js";

const CURVE_LEFT = 70;
const CURVE_RIGHT = 40;

function sized(canvas) {
  const dpr = window.devicePixelRatio || 1;
  const [w, h] = [canvas.clientWidth, canvas.clientHeight];
  canvas.width = w * dpr;
  canvas.height = h * dpr;
  const g = canvas.getContext("2d");
  g.scale(dpr, dpr);
  return [g, w, h];
}

export function paintWhere(canvas, first, boxes, colour, ink) {
  const [g, w, h] = sized(canvas);
  paintStrip(g, first, w, h, ink, new Set(boxes), colour);
}

export class TraceCurve {
  // `choose(step)`: one was clicked.
  constructor(films, choose) {
    this.films = films;
    this.canvas = element("canvas", "cgorl-curve");
    this.canvas.setAttribute("role", "img");
    this.canvas.addEventListener("pointerdown", (e) => choose(this.stepAt(e.offsetX)));
    this.long = 1;
    this.loud = -1; // a branch to be seen before the others
  }

  get room() {
    return Math.max(1, this.canvas.clientWidth - CURVE_LEFT - CURVE_RIGHT);
  }

  across(k) {
    return CURVE_LEFT + (this.room * k) / this.long;
  }

  stepAt(px) {
    return Math.round(((px - CURVE_LEFT) / this.room) * this.long - 0.5);
  }

  // Film `number` with a cursor at step `now`.
  paint(number, now) {
    const film = this.films.get(number);
    this.canvas.hidden = !film || film.rows.length === 0;
    if (this.canvas.hidden || !this.canvas.clientWidth) return;
    const others = this.films.list.filter((b) => b.number !== number && this.films.get(b.number));
    const shown = [film, ...others.map((b) => this.films.get(b.number))];
    this.long = Math.max(1, ...shown.map((f) => f.rows.length));
    const ink = inks(this.canvas);
    const [g, w, h] = sized(this.canvas);
    const costs = shown.flatMap((f) => f.costs);
    const [low, high] = [Math.min(...costs), Math.max(...costs)];
    const y = (ms) => 12 + ((h - 24) * (high - ms)) / (high - low || 1);
    g.fillStyle = ink.paper;
    g.fillRect(0, 0, w, h);
    g.font = "11px system-ui, sans-serif";
    g.textBaseline = "middle";
    for (const ms of [high, low]) {
      g.strokeStyle = ink.dark ? "#3a3a3a" : "#dddddd";
      g.beginPath();
      g.moveTo(CURVE_LEFT, y(ms));
      g.lineTo(w - 10, y(ms));
      g.stroke();
      g.fillStyle = ink.faint;
      g.fillText(milliseconds(ms), 6, y(ms));
    }
    const last = film.rows.length;
    g.fillStyle = ink.accent;
    g.globalAlpha = 0.18;
    g.fillRect(this.across(now), 0, now < last ? Math.max(2, this.across(now + 1) - this.across(now)) : 2, h);
    g.globalAlpha = 1;
    for (const b of others) this.behind(g, b, y, ink);
    g.lineWidth = 2.5;
    film.rows.forEach(([rule], k) => {
      g.strokeStyle = this.films.colour(rule);
      g.beginPath();
      g.moveTo(this.across(k), y(film.costs[k]));
      g.lineTo(this.across(k + 1), y(film.costs[k + 1]));
      g.stroke();
    });
    for (const b of others) this.name(g, b, y, ink);
    const at = Math.min(now + 1, last);
    g.fillStyle = ink.accent;
    g.beginPath();
    g.arc(this.across(at), y(film.costs[at]), 4, 0, 7);
    g.fill();
    const told = `cost from ${milliseconds(film.costs[0])} to ${milliseconds(film.costs.at(-1))} in ${last} steps`;
    this.canvas.setAttribute("aria-label", others.length ? `${told}, among ${others.length} other ways` : told);
    this.canvas.dataset.ways = String(shown.length);
  }

  // Another way, from where it is not the same as its parent's.
  behind(g, about, y, ink) {
    const film = this.films.get(about.number);
    const loud = this.loud === about.number;
    g.strokeStyle = loud ? ink.ink : ink.line;
    g.lineWidth = loud ? 2.5 : 1.5;
    g.setLineDash([5, 3]);
    g.beginPath();
    for (let k = about.at; k < film.costs.length; k++) g.lineTo(this.across(k), y(film.costs[k]));
    g.stroke();
    g.setLineDash([]);
  }

  name(g, about, y, ink) {
    const film = this.films.get(about.number);
    const [x, name] = [this.across(film.rows.length) + 5, about.number ? String(about.number) : "trace"];
    g.fillStyle = ink.paper;
    g.fillRect(x - 1, y(film.costs.at(-1)) - 7, g.measureText(name).width + 3, 13);
    g.fillStyle = this.loud === about.number ? ink.ink : ink.faint;
    g.fillText(name, x, y(film.costs.at(-1)));
  }
}
