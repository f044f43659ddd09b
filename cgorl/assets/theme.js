// Light or dark paper, as the page around has it, and the colours that a canvas draws with.

export function isDark(el) {
  const body = document.body;
  if (body && body.dataset.jpThemeLight) return body.dataset.jpThemeLight === "false"; // JupyterLab
  const paper = getComputedStyle(el).getPropertyValue("--jp-layout-color0").trim();
  if (paper) return brightness(paper) < 0.5;
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

function brightness(colour) {
  const probe = document.createElement("canvas").getContext("2d");
  probe.fillStyle = colour;
  probe.fillRect(0, 0, 1, 1);
  const [r, g, b] = probe.getImageData(0, 0, 1, 1).data;
  return (0.3 * r + 0.59 * g + 0.11 * b) / 255;
}

// Sets the class that cgorl.css goes by, and tells whenever the page changes its mind; returns what ends that.
export function followTheme(el, tell) {
  const apply = () => {
    el.classList.toggle("cgorl-dark", isDark(el));
    tell();
  };
  const watch = new MutationObserver(apply);
  if (document.body) watch.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "class"] });
  const media = matchMedia("(prefers-color-scheme: dark)");
  media.addEventListener("change", apply);
  apply();
  return () => {
    watch.disconnect();
    media.removeEventListener("change", apply);
  };
}

// Hides the picture that stands in the page for a widget where there is no live view; returns what shows it again.
export function hideStandIn(model) {
  if (!model.get("stand_in")) return () => {}; // there is none
  const style = document.createElement("style");
  const picture = `[data-cgorl="${model.get("stand_in")}"]`;
  style.textContent = `${picture}, .jp-OutputArea-child:has(> .jp-OutputArea-output ${picture}) { display: none !important; }`;
  document.head.append(style);
  return () => style.remove();
}

export function inks(el) {
  const dark = el.closest(".cgorl-dark") !== null;
  return dark
    ? { dark, paper: "#161616", ink: "#ececec", faint: "#9a9a9a", line: "#7b7b7b", edge: "#8a8a8a", accent: "#5fb0ff", found: "#ffcf4d" }
    : { dark, paper: "#ffffff", ink: "#1c1c1c", faint: "#666666", line: "#9a9a9a", edge: "#7a7a7a", accent: "#0b62c4", found: "#c47f00" };
}

// From paper to a strong red, for a share of 0 to 1 of the largest.
export function heat(share, dark) {
  const [cold, hot] = dark ? [[52, 52, 52], [224, 72, 40]] : [[244, 242, 238], [222, 70, 40]];
  const t = Math.sqrt(Math.max(0, Math.min(1, share)));
  return `rgb(${cold.map((c, k) => Math.round(c + t * (hot[k] - c))).join(",")})`;
}

export const milliseconds = (ms) => (ms === 0 ? "0 ms" : ms >= 100 ? `${ms.toFixed(0)} ms` : `${Number(ms.toPrecision(3))} ms`);
export const percent = (share) => `${(100 * share).toFixed(share >= 0.1 ? 0 : 1)} %`;

export function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

/** A colour in both themes and what it stands for: an entry of a legend. */
export function kindOf(name, light, dark) {
  const item = element("span", "cgorl-kind");
  const swatch = element("i");
  swatch.style.setProperty("--light", light);
  swatch.style.setProperty("--dark", dark);
  item.append(swatch, name);
  return item;
}
