// What a graph looks like: lines, boxes, and the whole of it in a small space. `view` is a GraphCanvas.
import { heat } from "./theme.js";

export const BOX = 28;
export const MINIMAP = 84;
const ROW = 54;

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

function piece(g, view, p) {
  const { x, y, links } = view.scene;
  const [a, b] = [links[p], links[p + 1]];
  const [y0, y1] = [y[a] + (a < view.count ? BOX : BOX / 2), y[b] + (b < view.count ? 0 : BOX / 2)];
  g.moveTo(x[a], y0);
  if (x[a] === x[b] || view.scale < 0.15) g.lineTo(x[b], y1);
  else {
    const bend = (y1 - y0) * 0.5;
    g.bezierCurveTo(x[a], y0 + bend, x[b], y1 - bend, x[b], y1);
  }
  if (b < view.count && view.scale > 0.35) {
    g.moveTo(x[b] - 3, y1 - 5);
    g.lineTo(x[b], y1);
    g.lineTo(x[b] + 3, y1 - 5);
  }
}

export function paintLinks(g, view, ink) {
  const { y, links } = view.scene;
  const [low, high] = [view.top - ROW, view.top + view.high / view.scale + ROW];
  g.lineWidth = Math.max(1, 0.7 / view.scale);
  g.strokeStyle = ink.edge;
  g.globalAlpha = view.found ? 0.35 : 0.8;
  g.beginPath();
  for (let p = 0; p < links.length; p += 2) if (y[links[p]] <= high && y[links[p + 1]] >= low) piece(g, view, p);
  g.stroke();
  g.globalAlpha = 1;
  for (const k of new Set([view.selected, view.hovered])) {
    if (k < 0) continue;
    g.strokeStyle = ink.accent;
    g.lineWidth = Math.max(2, 1.4 / view.scale);
    g.beginPath();
    for (const p of view.pieces[k]) piece(g, view, p);
    g.stroke();
  }
}

function fill(view, k, ink) {
  const { family, families, mark, marks, cost } = view.scene;
  if (view.colour === "cost") return heat(view.dearest ? cost[k] / view.dearest : 0, ink.dark);
  const [, light, dark] = view.colour === "mark" ? marks[mark[k]] : families[family[k]];
  return ink.dark ? dark : light;
}

export function paintBoxes(g, view, ink) {
  const { x, y, width, cost, mark } = view.scene;
  const [low, high] = [view.top - BOX, view.top + view.high / view.scale];
  const [near, far] = [view.left, view.left + view.wide / view.scale];
  const written = view.scale > 0.4;
  g.font = "12px system-ui, sans-serif";
  g.textAlign = "center";
  g.textBaseline = "middle";
  for (let k = 0; k < view.count; k++) {
    const half = width[k] / 2;
    if (y[k] > high || y[k] < low || x[k] + half < near || x[k] - half > far) continue;
    const hit = view.found?.has(k);
    g.globalAlpha = view.found && !hit && k !== view.selected ? 0.3 : 1;
    g.fillStyle = fill(view, k, ink);
    g.strokeStyle = k === view.selected ? ink.accent : hit ? ink.found : ink.line;
    g.lineWidth = k === view.selected || hit || (view.colour === "mark" && mark[k]) ? Math.max(2.5, 1.5 / view.scale) : 1;
    g.beginPath();
    if (written) g.roundRect(x[k] - half, y[k], 2 * half, BOX, 6);
    else g.rect(x[k] - half, y[k], 2 * half, BOX);
    g.fill();
    if (view.scale > 0.15 || k === view.selected || hit) g.stroke();
    if (!written) continue;
    const hot = view.colour === "cost" && view.dearest && cost[k] / view.dearest > 0.35;
    g.fillStyle = hot && !ink.dark ? "#000000" : ink.ink;
    g.fillText(view.text("label", k), x[k], y[k] + BOX / 2 + 0.5);
  }
  g.globalAlpha = 1;
}

export function mapScale(view) {
  const sx = (MINIMAP - 8) / Math.max(1, view.extent.width);
  const sy = (view.high - 16) / Math.max(1, view.extent.height);
  return { sx: Math.min(sx, 1), sy: Math.min(sy, 1) };
}

export function paintMap(view, ink) {
  view.map.hidden = !view.mapped();
  if (view.map.hidden) return;
  const dpr = window.devicePixelRatio || 1;
  const { sx, sy } = mapScale(view);
  const [w, h] = [MINIMAP, Math.min(view.high - 8, view.extent.height * sy + 8)];
  view.map.style.width = `${w}px`;
  view.map.style.height = `${h}px`;
  view.map.width = w * dpr;
  view.map.height = h * dpr;
  const g = view.map.getContext("2d");
  g.scale(dpr, dpr);
  g.fillStyle = ink.paper;
  g.fillRect(0, 0, w, h);
  const { x, y, width, mark } = view.scene;
  for (let k = 0; k < view.count; k++) {
    g.fillStyle = view.found?.has(k) ? ink.found : k === view.selected ? ink.accent : fill(view, k, ink);
    const bold = view.found?.has(k) || k === view.selected || (view.colour === "mark" && mark[k]);
    const [bw, bh] = [Math.max(bold ? 6 : 2, width[k] * sx), Math.max(bold ? 4 : 1.5, BOX * sy)];
    g.fillRect(x[k] * sx - bw / 2 + 4, y[k] * sy, bw, bh);
  }
  g.strokeStyle = ink.accent;
  g.lineWidth = 1.5;
  g.strokeRect(view.left * sx + 4, view.top * sy, (view.wide / view.scale) * sx, (view.high / view.scale) * sy);
}
