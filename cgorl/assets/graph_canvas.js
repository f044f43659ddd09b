// A graph drawn on a canvas: pan, zoom, minimap, selection, what is known of the box under the pointer, and keys.
import { BOX, MINIMAP, mapScale, paintBoxes, paintLinks, paintMap } from "./graph_paint.js";
import { ties } from "./graph_ties.js";
import { element, inks, milliseconds, percent } from "./theme.js";

const LARGEST = 3;

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
    Object.assign(this, ties(scene));
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
      const { sx, sy } = mapScale(this);
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
    paintLinks(g, this, ink);
    paintBoxes(g, this, ink);
    paintMap(this, ink);
    this.root.dataset.painted = String(performance.now());
  }

  // ---------------------------------------------------------------- minimap and search
  mapped() {
    return !this.options.bare && this.count > 12;
  }

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
