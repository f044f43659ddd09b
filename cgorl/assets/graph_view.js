// GraphView: one graph with a search box, colours, and blocks that fold.
import { GraphCanvas } from "./graph_canvas.js";
import { unpack } from "./packed.js";
import { element, followTheme, hideStandIn, kindOf, milliseconds } from "./theme.js";

export function legend(scene, colour, host) {
  host.replaceChildren();
  if (colour === "cost") {
    host.append(element("span", "cgorl-heat"), element("span", "", scene.total > 0 ? "cost of a node, up to the dearest" : "no cost was given"));
    return;
  }
  const kinds = colour === "mark" ? scene.marks : scene.families;
  const which = colour === "mark" ? scene.mark : scene.family;
  for (const k of [...new Set(which)].sort((a, b) => a - b)) {
    host.append(kindOf(...kinds[k]));
  }
}

function render({ model, el }) {
  const root = element("div", "cgorl cgorl-graph");
  const bar = element("div", "cgorl-bar");
  const words = element("input");
  Object.assign(words, { type: "search", placeholder: "search name or operator" });
  const hits = element("span", "cgorl-hits");
  hits.setAttribute("aria-live", "polite");
  const colour = element("select");
  colour.title = colour.ariaLabel = "colour by";
  for (const [value, text] of [["operator", "colour by operator"], ["cost", "colour by cost"]]) colour.append(new Option(text, value));
  const button = (text, title, act) => {
    const made = element("button", "", text);
    made.title = title;
    made.addEventListener("click", act);
    return made;
  };
  const tick = (text, trait) => {
    const label = element("label");
    const box = element("input");
    box.type = "checkbox";
    box.checked = model.get(trait);
    box.addEventListener("change", () => {
      model.set(trait, box.checked);
      model.save_changes();
    });
    model.on(`change:${trait}`, () => (box.checked = model.get(trait)));
    label.append(box, text);
    return label;
  };
  const facts = element("span", "cgorl-facts");
  const host = element("div", "cgorl-host");
  host.style.height = `${model.get("height")}px`;
  const kinds = element("div", "cgorl-legend");
  root.append(bar, host, kinds);
  el.append(root);

  let anchor = -1;
  const canvas = new GraphCanvas(host, {
    search: () => words.focus(),
    open: (k) => {
      anchor = canvas.scene.block[k];
      if (anchor >= 0) model.send({ kind: "fold", block: anchor });
    },
  });
  bar.append(words, hits, colour);
  bar.append(button("−", "zoom out (-)", () => canvas.zoom(0.8)), button("+", "zoom in (+)", () => canvas.zoom(1.25)));
  bar.append(button("fit", "show all (0)", () => canvas.fit()));
  if (model.get("blocks")) bar.append(tick(`fold ${model.get("blocks")} repeated blocks`, "folded"));
  if (model.get("constants") !== undefined) bar.append(tick("show constants", "constants"));
  bar.append(facts);

  words.addEventListener("input", () => {
    const n = canvas.search(words.value);
    hits.textContent = words.value.trim() ? `${n} found` : "";
  });
  words.addEventListener("keydown", (e) => {
    if (e.key === "Enter") canvas.next(e.shiftKey ? -1 : 1);
    if (e.key === "Escape") canvas.canvas.focus();
    e.stopPropagation();
  });
  colour.value = canvas.colour = model.get("colour");
  const paintLegend = () => canvas.scene && legend(canvas.scene, canvas.colour, kinds);
  colour.addEventListener("change", () => {
    model.set("colour", colour.value);
    model.save_changes();
  });
  const recolour = () => {
    colour.value = canvas.colour = model.get("colour");
    canvas.draw();
    paintLegend();
  };
  model.on("change:colour", recolour);

  let newest = 0;
  const load = async () => {
    const mine = ++newest;
    const scene = await unpack(model.get("picture"));
    if (mine !== newest) return; // a later one has come meanwhile
    canvas.show(scene, anchor);
    anchor = -1;
    if (words.value) hits.textContent = `${canvas.search(words.value)} found`;
    facts.textContent = `${model.get("title")}${scene.total > 0 ? `, ${milliseconds(scene.total)}` : ""}`;
    paintLegend();
  };
  model.on("change:picture", load);
  load();
  const reveal = hideStandIn(model);
  const end = followTheme(root, () => canvas.draw());
  return () => {
    end();
    reveal();
    model.off("change:picture", load);
    model.off("change:colour", recolour);
    canvas.destroy();
  };
}

export default { render };
