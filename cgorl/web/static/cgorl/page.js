// What several pages do: put the page as it is now in place of what it was, and say things to who listens.
import { localTimes } from "./times.js";

/** Says a sentence to a screen reader. */
export function say(sentence) {
  document.getElementById("say").textContent = sentence;
}

/** Fetches this page anew and shows it; the keyboard stays where it was, or goes to the heading. */
export async function renew() {
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
  if (!answer.ok) return location.reload();
  if (answer.redirected) return location.assign(answer.url); // logged out meanwhile
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const kept = document.activeElement?.id;
  const main = document.getElementById("main");
  main.replaceChildren(...page.getElementById("main").childNodes);
  document.title = page.title;
  localTimes(main);
  if (kept !== undefined && document.activeElement === document.body && kept !== "") (document.getElementById(kept) || main.querySelector("h1"))?.focus();
}

/** Waits for so many seconds. */
export const pause = (seconds) => new Promise((done) => setTimeout(done, 1000 * seconds));
