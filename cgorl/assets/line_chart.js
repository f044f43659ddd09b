// LineChart: lines over one pair of axes, some with a band, read where the pointer is; what cgorl/report/metrics/chart.py packs.
import { element, inks } from "./theme.js";

const LINE_COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8A6D3B", "#6A5ACD"];
const DARK_LINE_COLOURS = ["#4FA8E0", "#FF8A3D", "#2FC79A", "#E79AC6", "#F2B632", "#8ACDF2", "#C9A56B", "#A498F5"];
const MARGIN = { left: 66, right: 14, top: 18, foot: 32 };

export function lineColour(k, dark) {
  const colours = dark ? DARK_LINE_COLOURS : LINE_COLOURS;
  return colours[k % colours.length];
}

export function shortNumber(value) {
  if (value === null || Number.isNaN(value)) return "";
  const size = Math.abs(value);
  if (value && (size >= 1e5 || size < 1e-3)) return String(Number(value.toPrecision(3)));
  return size < 1000 ? String(Number(value.toFixed(4))) : Math.round(value).toLocaleString("en");
}

function roundTicks(low, high, count) {
  const room = high - low || Math.abs(high) || 1;
  let step = 10 ** Math.floor(Math.log10(room / count));
  step *= [1, 2, 5, 10].find((k) => room / (step * k) <= count);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) found.push(k * step);
  return found;
}

// The lines of unpacked data, as views into its points.
export function linesOf(data) {
  return data.lines.map(([label, colour, at, n, band, faint, steps]) => {
    const part = (k) => data.points.subarray(at + k * n, at + (k + 1) * n);
    return { label, colour, x: part(0), y: part(1), low: band ? part(2) : null, high: band ? part(3) : null, faint, steps };
  });
}

export class LineChart {
  constructor(host, label) {
    this.host = host;
    this.canvas = element("canvas", "cgorl-lines");
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", label);
    this.tip = element("div", "cgorl-tip");
    this.tip.hidden = true;
    host.append(this.canvas, this.tip);
    this.lines = [];
    this.names = ["", ""];
    this.pointer = null;
    this.canvas.addEventListener("pointermove", (e) => {
      this.pointer = [e.offsetX, e.offsetY];
      this.draw();
    });
    this.canvas.addEventListener("pointerleave", () => {
      this.pointer = null;
      this.draw();
    });
    this.watch = new ResizeObserver(() => this.draw());
    this.watch.observe(host);
  }

  show(data) {
    this.lines = linesOf(data).filter((line) => line.x.length);
    this.names = [data.x_name, data.y_name];
    this.draw();
  }

  destroy() {
    this.watch.disconnect();
  }

  extent() {
    let [x0, x1, y0, y1] = [Infinity, -Infinity, Infinity, -Infinity];
    for (const line of this.lines) {
      for (const x of line.x) [x0, x1] = [Math.min(x0, x), Math.max(x1, x)];
      for (const of of [line.y, line.low, line.high]) for (const y of of || []) [y0, y1] = [Math.min(y0, y), Math.max(y1, y)];
    }
    if (x0 === Infinity) return [0, 1, 0, 1];
    const room = 0.05 * (y1 - y0) || 0.05 * Math.abs(y1) || 0.5;
    return [x0, x1 > x0 ? x1 : x0 + 1, y0 - room, y1 + room];
  }

  draw() {
    const [w, h] = [this.host.clientWidth, this.host.clientHeight];
    if (!w || !h) return;
    const dense = window.devicePixelRatio || 1;
    Object.assign(this.canvas, { width: w * dense, height: h * dense });
    const pen = this.canvas.getContext("2d");
    pen.scale(dense, dense);
    const ink = inks(this.canvas);
    const [x0, x1, y0, y1] = this.extent();
    const across = (x) => MARGIN.left + ((w - MARGIN.left - MARGIN.right) * (x - x0)) / (x1 - x0);
    const down = (y) => MARGIN.top + ((h - MARGIN.top - MARGIN.foot) * (y1 - y)) / (y1 - y0);
    pen.fillStyle = ink.paper;
    pen.fillRect(0, 0, w, h);
    pen.font = "11px system-ui, sans-serif";
    pen.fillStyle = ink.faint;
    pen.strokeStyle = ink.dark ? "#333" : "#e2e2e2";
    pen.lineWidth = 1;
    pen.textAlign = "right";
    for (const y of roundTicks(y0, y1, Math.max(2, Math.floor(h / 60)))) {
      pen.beginPath();
      pen.moveTo(MARGIN.left, down(y));
      pen.lineTo(w - MARGIN.right, down(y));
      pen.stroke();
      pen.fillText(shortNumber(y), MARGIN.left - 6, down(y) + 4);
    }
    pen.textAlign = "center";
    for (const x of roundTicks(x0, x1, Math.max(2, Math.floor(w / 110)))) pen.fillText(shortNumber(x), across(x), h - MARGIN.foot + 15);
    pen.textAlign = "right";
    pen.fillText(this.names[0], w - MARGIN.right, h - 4);
    pen.textAlign = "left";
    pen.fillText(this.names[1], MARGIN.left, 11);
    if (!this.lines.length) {
      pen.textAlign = "center";
      pen.fillText("no values yet", w / 2, h / 2);
    }
    for (const line of this.lines) this.paint(pen, line, across, down, ink);
    this.readout(pen, x0, x1, across, down, ink, w, h);
    this.canvas.dataset.painted = String(this.lines.length);
  }

  paint(pen, line, across, down, ink) {
    const colour = lineColour(line.colour, ink.dark);
    if (line.low) {
      pen.beginPath();
      line.x.forEach((x, k) => pen.lineTo(across(x), down(line.high[k])));
      for (let k = line.x.length - 1; k >= 0; k--) pen.lineTo(across(line.x[k]), down(line.low[k]));
      pen.fillStyle = colour;
      pen.globalAlpha = ink.dark ? 0.25 : 0.16;
      pen.fill();
    }
    pen.globalAlpha = line.faint ? 0.4 : 1;
    pen.strokeStyle = colour;
    pen.lineWidth = line.faint ? 1 : 2;
    pen.lineJoin = "round";
    pen.beginPath();
    line.x.forEach((x, k) => {
      if (line.steps && k) pen.lineTo(across(x), down(line.y[k - 1]));
      pen.lineTo(across(x), down(line.y[k]));
    });
    if (line.x.length === 1) pen.arc(across(line.x[0]), down(line.y[0]), 2.5, 0, 2 * Math.PI);
    pen.stroke();
    pen.globalAlpha = 1;
  }

  // The values of the lines at the pointer.
  readout(pen, x0, x1, across, down, ink, w, h) {
    this.tip.hidden = true;
    if (!this.pointer || !this.lines.length) return;
    const at = x0 + ((this.pointer[0] - MARGIN.left) / (w - MARGIN.left - MARGIN.right)) * (x1 - x0);
    if (at < x0 || at > x1) return;
    const told = [];
    for (const line of this.lines) {
      if (line.faint || line.x[0] > at) continue;
      let k = line.x.findIndex((x) => x > at);
      k = k < 0 ? line.x.length - 1 : line.steps || k === 0 ? k - 1 : at - line.x[k - 1] < line.x[k] - at ? k - 1 : k;
      told.push([line, k]);
      pen.fillStyle = lineColour(line.colour, ink.dark);
      pen.beginPath();
      pen.arc(across(line.x[k]), down(line.y[k]), 3.5, 0, 2 * Math.PI);
      pen.fill();
    }
    if (!told.length) return;
    pen.strokeStyle = ink.line;
    pen.beginPath();
    pen.moveTo(this.pointer[0], MARGIN.top);
    pen.lineTo(this.pointer[0], h - MARGIN.foot);
    pen.stroke();
    this.tip.replaceChildren(element("div", "cgorl-name", `${this.names[0]} ${shortNumber(Number(at.toPrecision(4)))}`));
    for (const [line, k] of told.slice(0, 12)) {
      const row = element("div");
      const chip = element("i", "cgorl-chip");
      chip.style.background = lineColour(line.colour, ink.dark);
      const spread = line.low && !Number.isNaN(line.low[k]) ? ` (${shortNumber(line.low[k])} to ${shortNumber(line.high[k])})` : "";
      row.append(chip, `${line.label}: ${shortNumber(line.y[k])}${spread}`);
      this.tip.append(row);
    }
    this.tip.hidden = false;
    const right = this.pointer[0] > w / 2;
    this.tip.style.left = right ? "auto" : `${this.pointer[0] + 14}px`;
    this.tip.style.right = right ? `${w - this.pointer[0] + 14}px` : "auto";
    this.tip.style.top = `${Math.min(this.pointer[1], h - 60)}px`;
  }
}
