// A model's page: waits until it is known what the model is, and shows only the choices that count.
import { pause, renew, say } from "./page.js";

function choices() {
  const form = document.getElementById("options");
  if (!form) return;
  const device = document.getElementById("device");
  const apply = () => (device.hidden = form.elements.cost.value === "measured");
  form.addEventListener("change", apply);
  apply();
  form.addEventListener("submit", () => setTimeout(() => (form.querySelector("button.primary").disabled = true)));
  window.addEventListener("pageshow", () => (form.querySelector("button.primary").disabled = false)); // come back to
}

async function look(url) {
  for (;;) {
    await pause(0.5);
    try {
      const answer = await fetch(url);
      if (answer.status === 404 || answer.status === 401 || (answer.ok && (await answer.json()).ended)) break;
    } catch {
      await pause(3); // away for a moment
    }
  }
  await renew();
  say("The model was read.");
  choices();
}

const looking = document.getElementById("looking");
if (looking) look(looking.dataset.look);
else choices();
