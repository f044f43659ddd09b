// The list of jobs: two can be ticked, no more; and it is looked at again while one of them runs.
import { pause, renew } from "./page.js";

const ticked = () => [...document.querySelectorAll("#choose input:checked")];

document.addEventListener("change", (e) => {
  if (!e.target.matches("#choose input")) return;
  const chosen = ticked();
  if (chosen.length > 2) chosen.find((box) => box !== e.target).checked = false;
  button();
});

function button() {
  const found = document.querySelector("#choose .actions button");
  if (found) found.disabled = ticked().length !== 2;
}

async function watch() {
  while (document.querySelector(".badge.now, .badge:not(.good, .bad, .plain)")) {
    await pause(3);
    if (document.hidden || ticked().length || document.activeElement?.closest("main table")) continue; // not under one's hands
    try {
      await renew();
    } catch {
      continue; // away for a moment
    }
    button();
  }
}

button();
watch();
