// RunView: the curves of runs, what to draw and how smooth, and how each run is.
import { LineChart, lineColour, shortNumber } from "./line_chart.js";
import { unpack } from "./packed.js";
import { element, followTheme, hideStandIn, inks } from "./theme.js";

function render({ model, el }) {
  const root = element("div", "cgorl cgorl-runs");
  const bar = element("div", "cgorl-bar");
  const labelled = (text, control) => {
    const made = element("label", "", text);
    made.append(control);
    bar.append(made);
    return control;
  };
  const chooser = (text, trait, choices) => {
    const made = labelled(text, element("select"));
    const fill = () => {
      made.replaceChildren(...model.get(choices).map((name) => Object.assign(element("option", "", name), { value: name })));
      made.value = model.get(trait);
    };
    made.addEventListener("change", () => put(trait, made.value));
    fill();
    return fill;
  };
  const put = (trait, value) => {
    model.set(trait, value);
    model.save_changes();
  };
  const fills = [chooser("", "metric", "metrics"), chooser("over", "axis", "axes")];
  const smooth = labelled("smooth", element("input"));
  Object.assign(smooth, { type: "range", min: 0, max: 0.99, step: 0.01, value: model.get("smooth"), ariaLabel: "weight of the past" });
  const weight = element("span", "cgorl-hits", "");
  bar.append(weight);
  const band = element("input");
  Object.assign(band, { type: "checkbox", checked: model.get("band") });
  const bandLabel = element("label");
  bandLabel.append(band, "seeds as one line with its interval");
  bar.append(bandLabel);
  const host = element("div", "cgorl-host");
  host.style.height = `${model.get("height")}px`;
  const legend = element("div", "cgorl-legend");
  const table = element("div", "cgorl-ledger cgorl-states");
  table.setAttribute("aria-live", "off");
  root.append(bar, host, legend, table);
  el.append(root);
  const chart = new LineChart(host, "curves of the runs");
  let data = null;

  let waits = 0;
  smooth.addEventListener("input", () => {
    weight.textContent = smooth.value;
    clearTimeout(waits); // one question for a whole pull of the slider
    waits = setTimeout(() => put("smooth", Number(smooth.value)), 120);
  });
  band.addEventListener("change", () => put("band", band.checked));

  const settings = () => {
    for (const fill of fills) fill();
    smooth.value = model.get("smooth");
    weight.textContent = model.get("smooth") ? String(model.get("smooth")) : "off";
    band.checked = model.get("band");
  };

  let asked = 0;
  const picture = async () => {
    const mine = ++asked;
    const found = await unpack(model.get("picture"));
    if (mine !== asked) return; // a newer one is on its way
    data = found;
    chart.show(data);
    paint();
  };

  function paint() {
    if (!data) return;
    const { dark } = inks(root);
    legend.replaceChildren();
    for (const [k, label] of new Map(data.rows.map((row) => [row[0], row[1]]))) {
      const kind = element("span", "cgorl-kind");
      const chip = element("i");
      chip.style.background = lineColour(k, dark);
      kind.append(chip, label);
      legend.append(kind);
    }
    if (data.note) legend.append(element("span", "", data.note));
    const made = element("table");
    const head = element("tr");
    const titles = ["seed", "run", "state", "lines", `last ${model.get("metric")}`];
    titles.forEach((title, k) => head.append(element("th", k > 2 ? "number" : "", title)));
    const thead = element("thead");
    thead.append(head);
    const body = element("tbody");
    for (const [k, , seed, folder, state, lines, value] of data.rows) {
      const row = element("tr");
      const first = element("td");
      const chip = element("i", "cgorl-chip");
      chip.style.background = lineColour(k, dark);
      first.append(chip, seed);
      row.append(first, element("td", "", folder), element("td", "", state));
      row.append(element("td", "number", lines.toLocaleString("en")), element("td", "number", shortNumber(value)));
      body.append(row);
    }
    made.append(thead, body);
    table.replaceChildren(made);
    if (data.left_out) table.append(element("p", "cgorl-facts", `the newest are shown; ${data.left_out} older ones are not`));
    if (!data.rows.length) table.append(element("p", "cgorl-facts", "no run has begun yet"));
  }

  const traits = ["metric", "axis", "smooth", "band", "metrics", "axes"];
  for (const trait of traits) model.on(`change:${trait}`, settings);
  model.on("change:picture", picture);
  const reveal = hideStandIn(model);
  const end = followTheme(root, () => {
    chart.draw();
    paint();
  });
  settings();
  picture();
  return () => {
    end();
    reveal();
    clearTimeout(waits);
    for (const trait of traits) model.off(`change:${trait}`, settings);
    model.off("change:picture", picture);
    chart.destroy();
  };
}

export default { render };
