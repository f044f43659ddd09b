// A graph drawn on a canvas: pan, zoom, minimap, selection, what is known of the box under the pointer, and keys.
import { element, heat, inks, milliseconds, percent } from "./theme.js";

const BOX = 28;
const ROW = 54;
const MINIMAP = 84;
const LARGEST = 3;

// A whole graph in a small space, its height and width each squeezed as they need; boxes numbered in `loud` are seen in `colour`.
export function paintStrip(g, scene, w, h, ink, loud, colour) {
  const { x, y, width, op } = scene;
  let [right, low] = [1, 1];
  for (let k = 0; k < op.length; k++) {
    right = Math.max(right, x[k] + width[k] / 2);
    low = Math.max(low, y[k] + BOX);
  }
  const [sx, sy] = [Math.min(1, (w - 8) / right), Math.min(1, (h - 8) / low)];
  g.fillStyle = ink.paper;
  g.fillRect(0, 0, w, h);
  for (const strong of [false, true])
    for (let k = 0; k < op.length; k++) {
      if (loud.has(k) !== strong) continue;
      g.fillStyle = strong ? colour : ink.dark ? "#4a4a4a" : "#cfcfcf";
      const [bw, bh] = [Math.max(strong ? 10 : 2, width[k] * sx), Math.max(strong ? 6 : 1.5, BOX * sy)];
      g.fillRect(4 + x[k] * sx - bw / 2, 4 + y[k] * sy, bw, bh);
    }
}

export class GraphCanvas {
  // `options.pick(box)`: a box was chosen (-1: none); `options.open(box)`: Enter or a double click on it;
  // `options.label`: for who does not see it.
  constructor(host, options = {}) {
    this.options = options;
    this.root = element("div", "cgorl-canvas");
    this.canvas = element("canvas", "cgorl-main");
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "application");
    this.canvas.setAttribute("aria-label", options.label || "graph: arrow keys walk along it, plus and minus zoom, 0 shows all");
    this.map = element("canvas", "cgorl-map");
    this.tip = element("div", "cgorl-tip");
    this.tip.setAttribute("aria-live", "polite");
    this.root.append(this.canvas, this.map, this.tip);
    host.append(this.root);
    this.scene = null;
    this.colour = "operator";
    this.found = null;
    this.selected = this.hovered = -1;
    this.scale = 1;
    this.left = this.top = 0;
    this.untouched = true;
    this.listen();
    this.sizes = new ResizeObserver(() => this.resized());
    this.sizes.observe(this.root);
  }

  destroy() {
    this.sizes.disconnect();
    this.root.remove();
  }

  // Shows another scene; with `anchor` (a block's number) that block stays where it was on the screen.
  show(scene, anchor = -1) {
    const before = this.scene && anchor >= 0 ? this.placeOf(this.scene, anchor) : null;
    this.scene = scene;
    const count = (this.count = scene.op.length);
    this.above = Array.from({ length: count }, () => []);
    this.below = Array.from({ length: count }, () => []);
    this.pieces = Array.from({ length: count }, () => []); // pieces of line that a box is at either end of
    const owner = new Int32Array(scene.x.length).fill(-1);
    for (let k = 0; k < count; k++) owner[k] = k;
    const links = scene.links;
    const into = new Map(); // a point that a line passes through: the piece that leads to it
    for (let p = 0; p < links.length; p += 2) {
      const [a, b] = [links[p], links[p + 1]];
      if (b >= count) {
        owner[b] = owner[a];
        into.set(b, p);
      }
    }
    for (let p = 0; p < links.length; p += 2) {
      const [a, b] = [links[p], links[p + 1]];
      const from = owner[a];
      this.pieces[from].push(p);
      if (b < count) {
        this.above[b].push(from);
        this.below[from].push(b);
        this.pieces[b].push(p);
        for (let at = a; at >= count; at = links[into.get(at)]) this.pieces[b].push(into.get(at));
      }
    }
    let right = 0;
    let low = 0;
    this.dearest = 0;
    for (let k = 0; k < scene.x.length; k++) {
      right = Math.max(right, scene.x[k] + (k < count ? scene.width[k] / 2 : 0));
      low = Math.max(low, scene.y[k]);
    }
    for (let k = 0; k < count; k++) this.dearest = Math.max(this.dearest, scene.cost[k]);
    this.extent = { width: right, height: low + BOX };
    this.found = null;
    this.selected = this.hovered = -1;
    this.tip.hidden = true;
    const after = before && this.placeOf(scene, anchor);
    if (after) {
      this.left += after.x - before.x;
      this.top += after.y - before.y;
    } else if (!before) {
      this.untouched = true;
      this.home();
    }
    this.draw();
  }

  placeOf(scene, block) {
    for (let k = 0; k < scene.op.length; k++) if (scene.block[k] === block) return { x: scene.x[k], y: scene.y[k] };
    return null;
  }

  text(name, k) {
    return this.scene.texts[this.scene[name][k]];
  }

  // ---------------------------------------------------------------- where one looks
  get wide() {
    return this.root.clientWidth;
  }

  get high() {
    return this.root.clientHeight;
  }

  // The top of the graph at a size that can be read, or all of it if that can be read.
  home() {
    if (!this.scene || !this.wide) return;
    const room = this.wide - (this.mapped() ? MINIMAP + 12 : 0) - 24;
    const whole = Math.min(room / this.extent.width, (this.high - 24) / this.extent.height, 1.15);
    this.scale = Math.max(whole, Math.min(room / this.extent.width, 1), this.options.whole ? 0 : 0.6);
    if (this.options.whole) this.scale = whole;
    this.left = this.extent.width / 2 - (room + 24) / 2 / this.scale;
    const tall = this.extent.height * this.scale > this.high - 24;
    this.top = tall ? -12 / this.scale : this.extent.height / 2 - this.high / 2 / this.scale;
    if (this.extent.width * this.scale > room) this.lookAtTop(room);
  }

  // The middle of the graph in the middle of the view, at a given size.
  middle(scale) {
    this.scale = scale;
    this.left = (this.extent.width - this.wide / scale) / 2;
    this.top = (this.extent.height - this.high / scale) / 2;
    this.draw();
  }

  // A graph wider than the view: looks at its first box.
  lookAtTop(room) {
    let first = 0;
    for (let k = 1; k < this.count; k++) if (this.scene.y[k] < this.scene.y[first]) first = k;
    this.left = this.scene.x[first] - (room + 24) / 2 / this.scale;
  }

  fit() {
    const room = this.wide - (this.mapped() ? MINIMAP + 12 : 0) - 24;
    this.scale = Math.min(room / this.extent.width, (this.high - 24) / this.extent.height, 1.15);
    this.left = this.extent.width / 2 - (room + 24) / 2 / this.scale;
    this.top = this.extent.height / 2 - this.high / 2 / this.scale;
    this.untouched = false;
    this.draw();
  }

  zoom(factor, sx = this.wide / 2, sy = this.high / 2) {
    const scale = Math.max(0.01, Math.min(LARGEST, this.scale * factor));
    this.left += sx / this.scale - sx / scale;
    this.top += sy / this.scale - sy / scale;
    this.scale = scale;
    this.untouched = false;
    this.draw();
  }

  pan(dx, dy) {
    this.left += dx / this.scale;
    this.top += dy / this.scale;
    this.untouched = false;
    this.draw();
  }

  centre(k) {
    if (this.scale < 0.5) this.scale = 0.9;
    this.left = this.scene.x[k] - (this.wide - (this.mapped() ? MINIMAP : 0)) / 2 / this.scale;
    this.top = this.scene.y[k] + BOX / 2 - this.high / 2 / this.scale;
    this.untouched = false;
  }

  select(k, move = true) {
    this.selected = k;
    if (k >= 0 && move) {
      const x = (this.scene.x[k] - this.left) * this.scale;
      const y = (this.scene.y[k] - this.top) * this.scale;
      const room = this.wide - (this.mapped() ? MINIMAP + 12 : 0);
      if (x < 30 || x > room - 30 || y < 0 || y > this.high - 40 || this.scale < 0.4) this.centre(k);
    }
    this.draw();
    this.tell(k);
    this.options.pick?.(k);
  }

  // ---------------------------------------------------------------- what one does
  listen() {
    const canvas = this.canvas;
    let drag = null;
    canvas.addEventListener("pointerdown", (e) => {
      drag = { x: e.offsetX, y: e.offsetY, moved: false };
      canvas.setPointerCapture(e.pointerId);
    });
    canvas.addEventListener("pointermove", (e) => {
      if (drag) {
        const [dx, dy] = [drag.x - e.offsetX, drag.y - e.offsetY];
        if (!drag.moved && Math.abs(dx) + Math.abs(dy) < 4) return;
        Object.assign(drag, { x: e.offsetX, y: e.offsetY, moved: true });
        this.pan(dx, dy);
        return;
      }
      const over = this.at(e.offsetX, e.offsetY);
      if (over !== this.hovered) {
        this.hovered = over;
        this.draw();
        this.tell(over >= 0 ? over : this.selected);
      }
      canvas.style.cursor = over >= 0 ? "pointer" : "grab";
    });
    canvas.addEventListener("pointerup", (e) => {
      if (drag && !drag.moved) this.select(this.at(e.offsetX, e.offsetY), false);
      drag = null;
    });
    canvas.addEventListener("pointerleave", () => {
      this.hovered = -1;
      this.tell(this.selected);
      this.draw();
    });
    canvas.addEventListener("dblclick", (e) => {
      const over = this.at(e.offsetX, e.offsetY);
      if (over >= 0) this.options.open?.(over);
    });
    // The wheel scrolls the page until the drawing is in use; then it moves the graph, and with Ctrl (or a pinch) it zooms.
    const wheel = (e) => {
      if (!e.ctrlKey && !e.metaKey && document.activeElement !== canvas && this.root.getRootNode().activeElement !== canvas) return;
      e.preventDefault();
      const step = e.deltaMode === 1 ? 30 : 1;
      if (e.ctrlKey || e.metaKey) this.zoom(Math.exp((-e.deltaY * step) / 300), e.offsetX, e.offsetY);
      else this.pan((e.shiftKey ? e.deltaY : e.deltaX) * step, (e.shiftKey ? 0 : e.deltaY) * step);
    };
    canvas.addEventListener("wheel", wheel, { passive: false });
    canvas.addEventListener("keydown", (e) => this.key(e));
    canvas.addEventListener("focus", () => this.draw());
    canvas.addEventListener("blur", () => this.draw());
    let jumping = false;
    const jump = (e) => {
      const { sx, sy } = this.mapScale();
      this.left = e.offsetX / sx - this.wide / 2 / this.scale;
      this.top = e.offsetY / sy - this.high / 2 / this.scale;
      this.untouched = false;
      this.draw();
    };
    this.map.addEventListener("pointerdown", (e) => {
      jumping = true;
      this.map.setPointerCapture(e.pointerId);
      jump(e);
    });
    this.map.addEventListener("pointermove", (e) => jumping && jump(e));
    this.map.addEventListener("pointerup", () => (jumping = false));
  }

  key(e) {
    if (!this.scene || e.altKey || e.ctrlKey || e.metaKey) return;
    const keys = {
      ArrowDown: () => this.walk("down"),
      ArrowUp: () => this.walk("up"),
      ArrowLeft: () => this.walk("left"),
      ArrowRight: () => this.walk("right"),
      "+": () => this.zoom(1.25),
      "=": () => this.zoom(1.25),
      "-": () => this.zoom(0.8),
      0: () => this.fit(),
      Home: () => this.select(0),
      End: () => this.select(this.count - 1),
      PageDown: () => this.pan(0, this.high * 0.8),
      PageUp: () => this.pan(0, -this.high * 0.8),
      Enter: () => this.selected >= 0 && this.options.open?.(this.selected),
      Escape: () => this.select(-1),
      "/": () => this.options.search?.(),
    };
    if (!keys[e.key]) return;
    e.preventDefault();
    e.stopPropagation(); // JupyterLab has its own meaning for most of them
    keys[e.key]();
  }

  walk(way) {
    const { x, y } = this.scene;
    const k = this.selected;
    if (k < 0) return this.select(0);
    let choices;
    if (way === "down") choices = this.below[k];
    else if (way === "up") choices = this.above[k];
    else {
      choices = [];
      for (let j = 0; j < this.count; j++) if (y[j] === y[k] && (way === "left" ? x[j] < x[k] : x[j] > x[k])) choices.push(j);
    }
    if (!choices.length) return;
    this.select(choices.reduce((a, b) => (Math.abs(x[b] - x[k]) < Math.abs(x[a] - x[k]) ? b : a)));
  }

  at(sx, sy) {
    if (!this.scene) return -1;
    const { x, y, width } = this.scene;
    const [px, py] = [sx / this.scale + this.left, sy / this.scale + this.top];
    const slack = this.scale < 0.4 ? 6 / this.scale : 0;
    for (let k = 0; k < this.count; k++)
      if (Math.abs(px - x[k]) <= width[k] / 2 + slack && py >= y[k] - slack && py <= y[k] + BOX + slack) return k;
    return -1;
  }

  tell(k) {
    this.tip.hidden = k < 0;
    if (k < 0) return;
    const { cost, total, block } = this.scene;
    this.tip.replaceChildren(element("b", "", this.text("op", k)), element("div", "cgorl-name", this.text("name", k)));
    for (const line of this.text("about", k).split("\n")) if (line) this.tip.append(element("div", "cgorl-fact", line));
    if (total > 0) this.tip.append(element("div", "cgorl-cost", `${milliseconds(cost[k])}, ${percent(cost[k] / total)} of all`));
    if (block[k] >= 0 && this.options.open) this.tip.append(element("div", "cgorl-fact", "double click or Enter folds or opens its block"));
    const x = (this.scene.x[k] - this.left) * this.scale;
    const y = (this.scene.y[k] - this.top) * this.scale;
    const half = (this.scene.width[k] / 2) * this.scale;
    const box = this.tip.getBoundingClientRect();
    let at = x + half + 10;
    if (at + box.width > this.wide - 4) at = x - half - 10 - box.width;
    this.tip.style.left = `${Math.max(4, Math.min(at, this.wide - box.width - 4))}px`;
    this.tip.style.top = `${Math.max(4, Math.min(y - 6, this.high - box.height - 4))}px`;
  }

  // ---------------------------------------------------------------- drawing
  resized() {
    const dpr = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(this.wide * dpr);
    this.canvas.height = Math.round(this.high * dpr);
    if (this.untouched) this.home();
    this.paint();
  }

  draw() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => this.paint());
  }

  paint() {
    cancelAnimationFrame(this.waiting);
    this.waiting = 0;
    if (!this.scene || !this.wide) return;
    const g = this.canvas.getContext("2d");
    const dpr = window.devicePixelRatio || 1;
    const ink = inks(this.root);
    g.setTransform(1, 0, 0, 1, 0, 0);
    g.fillStyle = ink.paper;
    g.fillRect(0, 0, this.canvas.width, this.canvas.height);
    const zoom = this.scale * dpr;
    g.setTransform(zoom, 0, 0, zoom, -this.left * zoom, -this.top * zoom);
    this.paintLinks(g, ink);
    this.paintBoxes(g, ink);
    this.paintMap(ink);
    this.root.dataset.painted = String(performance.now());
  }

  piece(g, p) {
    const { x, y, links } = this.scene;
    const [a, b] = [links[p], links[p + 1]];
    const [y0, y1] = [y[a] + (a < this.count ? BOX : BOX / 2), y[b] + (b < this.count ? 0 : BOX / 2)];
    g.moveTo(x[a], y0);
    if (x[a] === x[b] || this.scale < 0.15) g.lineTo(x[b], y1);
    else {
      const bend = (y1 - y0) * 0.5;
      g.bezierCurveTo(x[a], y0 + bend, x[b], y1 - bend, x[b], y1);
    }
    if (b < this.count && this.scale > 0.35) {
      g.moveTo(x[b] - 3, y1 - 5);
      g.lineTo(x[b], y1);
      g.lineTo(x[b] + 3, y1 - 5);
    }
  }

  paintLinks(g, ink) {
    const { y, links } = this.scene;
    const [low, high] = [this.top - ROW, this.top + this.high / this.scale + ROW];
    g.lineWidth = Math.max(1, 0.7 / this.scale);
    g.strokeStyle = ink.edge;
    g.globalAlpha = this.found ? 0.35 : 0.8;
    g.beginPath();
    for (let p = 0; p < links.length; p += 2) if (y[links[p]] <= high && y[links[p + 1]] >= low) this.piece(g, p);
    g.stroke();
    g.globalAlpha = 1;
    for (const k of new Set([this.selected, this.hovered])) {
      if (k < 0) continue;
      g.strokeStyle = ink.accent;
      g.lineWidth = Math.max(2, 1.4 / this.scale);
      g.beginPath();
      for (const p of this.pieces[k]) this.piece(g, p);
      g.stroke();
    }
  }

  fill(k, ink) {
    const { family, families, mark, marks, cost } = this.scene;
    if (this.colour === "cost") return heat(this.dearest ? cost[k] / this.dearest : 0, ink.dark);
    const [, light, dark] = this.colour === "mark" ? marks[mark[k]] : families[family[k]];
    return ink.dark ? dark : light;
  }

  paintBoxes(g, ink) {
    const { x, y, width, cost, mark } = this.scene;
    const [low, high] = [this.top - BOX, this.top + this.high / this.scale];
    const [near, far] = [this.left, this.left + this.wide / this.scale];
    const written = this.scale > 0.4;
    g.font = "12px system-ui, sans-serif";
    g.textAlign = "center";
    g.textBaseline = "middle";
    for (let k = 0; k < this.count; k++) {
      const half = width[k] / 2;
      if (y[k] > high || y[k] < low || x[k] + half < near || x[k] - half > far) continue;
      const hit = this.found?.has(k);
      g.globalAlpha = this.found && !hit && k !== this.selected ? 0.3 : 1;
      g.fillStyle = this.fill(k, ink);
      g.strokeStyle = k === this.selected ? ink.accent : hit ? ink.found : ink.line;
      g.lineWidth = k === this.selected || hit || (this.colour === "mark" && mark[k]) ? Math.max(2.5, 1.5 / this.scale) : 1;
      g.beginPath();
      if (written) g.roundRect(x[k] - half, y[k], 2 * half, BOX, 6);
      else g.rect(x[k] - half, y[k], 2 * half, BOX);
      g.fill();
      if (this.scale > 0.15 || k === this.selected || hit) g.stroke();
      if (!written) continue;
      const hot = this.colour === "cost" && this.dearest && cost[k] / this.dearest > 0.35;
      g.fillStyle = hot && !ink.dark ? "#000000" : ink.ink;
      g.fillText(this.text("label", k), x[k], y[k] + BOX / 2 + 0.5);
    }
    g.globalAlpha = 1;
  }

  // ---------------------------------------------------------------- minimap
  mapped() {
    return !this.options.bare && this.count > 12;
  }

  mapScale() {
    const sx = (MINIMAP - 8) / Math.max(1, this.extent.width);
    const sy = (this.high - 16) / Math.max(1, this.extent.height);
    return { sx: Math.min(sx, 1), sy: Math.min(sy, 1) };
  }

  paintMap(ink) {
    this.map.hidden = !this.mapped();
    if (this.map.hidden) return;
    const dpr = window.devicePixelRatio || 1;
    const { sx, sy } = this.mapScale();
    const [w, h] = [MINIMAP, Math.min(this.high - 8, this.extent.height * sy + 8)];
    this.map.style.width = `${w}px`;
    this.map.style.height = `${h}px`;
    this.map.width = w * dpr;
    this.map.height = h * dpr;
    const g = this.map.getContext("2d");
    g.scale(dpr, dpr);
    g.fillStyle = ink.paper;
    g.fillRect(0, 0, w, h);
    const { x, y, width, mark } = this.scene;
    for (let k = 0; k < this.count; k++) {
      g.fillStyle = this.found?.has(k) ? ink.found : k === this.selected ? ink.accent : this.fill(k, ink);
      const bold = this.found?.has(k) || k === this.selected || (this.colour === "mark" && mark[k]);
      const [bw, bh] = [Math.max(bold ? 6 : 2, width[k] * sx), Math.max(bold ? 4 : 1.5, BOX * sy)];
      g.fillRect(x[k] * sx - bw / 2 + 4, y[k] * sy, bw, bh);
    }
    g.strokeStyle = ink.accent;
    g.lineWidth = 1.5;
    g.strokeRect(this.left * sx + 4, this.top * sy, (this.wide / this.scale) * sx, (this.high / this.scale) * sy);
  }

  // ---------------------------------------------------------------- search
  search(words) {
    const wanted = words.trim().toLowerCase();
    this.found = null;
    if (wanted && this.scene) {
      this.found = new Set();
      for (let k = 0; k < this.count; k++)
        if (this.text("op", k).toLowerCase().includes(wanted) || this.text("name", k).toLowerCase().includes(wanted)) this.found.add(k);
    }
    this.draw();
    return this.found ? this.found.size : 0;
  }

  next(step = 1) {
    if (!this.found?.size) return;
    const all = [...this.found];
    const at = all.indexOf(this.selected);
    this.select(all[at < 0 ? (step > 0 ? 0 : all.length - 1) : (at + step + all.length) % all.length]);
  }
}
