// Two jobs: their curves over each other.
import { curves } from "./curves.js";

for (const figure of document.querySelectorAll("[data-curves]")) {
  curves(figure, JSON.parse(document.getElementById(figure.dataset.curves).textContent));
}
