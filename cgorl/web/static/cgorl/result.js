// A result's drawings: the graph before and after, the film of what was done, and the curve of the search.
import graphView from "../assets/graph_view.js";
import { unpack } from "../assets/packed.js";
import traceView from "../assets/trace_view.js";
import { curves } from "./curves.js";
import { bytes, Kept } from "./kept.js";

const MANY = 60;
const at = (host, name) => host.closest("[data-drawn]").dataset.drawn.replace(/_$/, name);

async function graph(host) {
  const name = host.dataset.graph;
  const picture = await bytes(at(host, name));
  const { blocks, op } = await unpack(picture);
  const folded = blocks > 0 && op.length > MANY;
  const pictures = { false: picture, true: blocks ? await bytes(at(host, `${name}-folded`)) : null };
  const values = { picture: pictures[folded], title: `${op.length} boxes`, blocks, folded, colour: "operator", height: innerWidth < 620 ? 380 : 520 };
  // One block is not opened by itself here: all are, or none.
  const model = new Kept(values, (content, self) => void (content.kind === "fold" && self.set("folded", !self.get("folded"))));
  model.on("change:folded", () => model.set("picture", pictures[model.get("folded")]));
  graphView.render({ model, el: host });
}

async function film(host) {
  const picture = await bytes(at(host, "film"));
  const step = async ({ kind, step: k }) => (kind === "step" ? Promise.all(["before", "after"].map((when) => bytes(at(host, `${k}-${when}`)))) : null);
  const values = { picture, step: 0, branch: 0, branches: [], asks: false, guides: [], note: "" }; // the trace alone: nothing can be tried out
  traceView.render({ model: new Kept(values, step), el: host });
}

/** Draws what the page has a place for, once it comes into view. */
export function drawResult(root) {
  const draw = async (host) => {
    try {
      await ("film" in host.dataset ? film(host) : graph(host));
    } catch (e) {
      host.textContent = e.message;
    }
  };
  const seen = new IntersectionObserver(
    (entries) => {
      for (const { target } of entries.filter((entry) => entry.isIntersecting)) {
        seen.unobserve(target);
        draw(target);
      }
    },
    { rootMargin: "400px" }
  );
  for (const host of root.querySelectorAll("[data-graph], [data-film]")) seen.observe(host);
  for (const figure of root.querySelectorAll("[data-curve]")) {
    const points = JSON.parse(document.getElementById(figure.dataset.curve).textContent);
    if (points.length > 1) curves(figure, [{ label: "best so far", points }]);
  }
}
