// Curves of searches: the best estimated time over the seconds, as points that the service keeps.
import { LineChart, lineColour } from "../assets/line_chart.js";
import { followTheme, kindOf } from "../assets/theme.js";

/** Draws `curves` ({label, points}) into a figure with a .cgorl-host; returns what draws others in their place. */
export function curves(figure, given) {
  figure.hidden = false;
  const chart = new LineChart(figure.querySelector(".cgorl-host"), "the best estimated time over the seconds of the search");
  const show = (curves) => {
    const points = [];
    const lines = curves.map(({ label, points: of }, k) => {
      const at = points.length;
      points.push(...of.map((p) => p[0]), ...of.map((p) => p[1]));
      return [label, k, at, of.length, 0, 0, 1];
    });
    chart.show({ lines, points: Float32Array.from(points), x_name: "seconds", y_name: "ms" });
  };
  const legend = figure.querySelector(".cgorl-legend");
  if (legend) legend.replaceChildren(...given.map(({ label }, k) => kindOf(label, lineColour(k, false), lineColour(k, true))));
  followTheme(figure, () => chart.draw());
  show(given);
  return show;
}
