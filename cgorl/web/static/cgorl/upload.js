// Upload: files or a folder dropped or chosen, the model told from its weights, sent with progress, and ended if one likes.
import { megabytes } from "../assets/pieces.js";
import { say } from "./page.js";

const form = document.getElementById("upload");
const $ = (selector) => form.querySelector(selector);
const [picker, folder, list, wrong, actions, moving] = ["#files", "#folder", ".files", ".live .wrong", ".actions", ".moving"].map($);
const [send, stop, bar, told] = [".send", ".stop", "progress", ".told"].map($);
const most = Number(form.dataset.most) * 2 ** 20;
let files = [];
let request = null;

$(".plain").remove(); // what it asks for is asked for by the rest
$(".live").hidden = false;

const isModel = (file) => /\.onnx$/i.test(file.name);
const dropped = new WeakMap(); // the path of a file that was dropped with its folder
const path = (file) => dropped.get(file) || file.webkitRelativePath || file.name;
const model = () => files.find(isModel) || files.find((f) => !/\.(data|bin|weights?)$/i.test(f.name)) || files[0];

/** Where a file of weights lies, seen from the model; of one that lies elsewhere, its name. */
function place(file) {
  const home = path(model()).slice(0, -model().name.length);
  return path(file).startsWith(home) ? path(file).slice(home.length) : file.name;
}

function complain(sentence) {
  wrong.textContent = sentence;
  wrong.hidden = !sentence;
}

function problem() {
  const size = files.reduce((sum, f) => sum + f.size, 0);
  if (size > most) return `These are ${megabytes(size)}: an upload may have ${megabytes(most)}.`;
  if (files.filter(isModel).length > 1) return "There is more than one ONNX file: take one at a time, with the files of its weights.";
  return "";
}

function show() {
  list.replaceChildren(
    ...files.map((file) => {
      const item = document.createElement("li");
      const name = document.createElement("b");
      name.textContent = path(file);
      const away = document.createElement("button");
      Object.assign(away, { type: "button", textContent: "Remove", ariaLabel: `Remove ${path(file)}`, disabled: Boolean(request) });
      away.addEventListener("click", () => {
        take(files.filter((f) => f !== file));
        (list.querySelector("button") || picker).focus();
      });
      item.append(name, ` ${megabytes(file.size)}${files.length > 1 ? (file === model() ? ", the model" : ", weights") : ""}`, away);
      return item;
    })
  );
  actions.hidden = !files.length;
  send.disabled = Boolean(problem()) || Boolean(request);
  stop.hidden = !request;
  moving.hidden = !request;
}

function take(now) {
  if (request) return;
  files = now;
  show();
  complain(problem());
  if (files.length && !problem()) send.focus();
}

// Later files of a path stand for earlier ones; what is hidden in a folder is not meant.
const shown = (file) => !path(file).split("/").some((part) => part.startsWith("."));
const add = (more) => take([...new Map([...files, ...more.filter(shown)].map((f) => [path(f), f])).values()]);

/** The files of what was dropped, those in folders too. */
async function within(entry) {
  if (entry.isFile) {
    const file = await new Promise((done, fail) => entry.file(done, fail));
    dropped.set(file, entry.fullPath.replace(/^\//, ""));
    return [file];
  }
  const reader = entry.createReader();
  const found = [];
  for (;;) {
    const some = await new Promise((done, fail) => reader.readEntries(done, fail)); // a hundred at a time
    if (!some.length) return found;
    for (const each of some) found.push(...(await within(each)));
  }
}

function progress(done, all, began) {
  const seconds = (performance.now() - began) / 1000;
  bar.value = done / all;
  const left = Math.ceil(((all - done) * seconds) / Math.max(1, done));
  told.textContent = done < all ? `${megabytes(done)} of ${megabytes(all)}${seconds > 1 ? `, ${left} s left` : ""}` : "Sent: a moment …";
}

function upload() {
  const body = new FormData();
  body.append("model", model());
  for (const file of files) {
    if (file === model()) continue;
    body.append("data", file);
    body.append("path", place(file));
  }
  request = new XMLHttpRequest();
  request.open("POST", form.dataset.send);
  request.setRequestHeader("X-CSRFToken", form.elements.csrfmiddlewaretoken.value);
  request.responseType = "json";
  const began = performance.now();
  request.upload.addEventListener("progress", (e) => progress(e.loaded, e.total, began));
  const end = (sentence) => {
    request = null;
    show();
    complain(sentence);
    send.focus();
  };
  request.addEventListener("load", () => {
    const answer = request.response;
    if (request.status === 201) location.assign(answer.url);
    else end(answer?.detail ? answer.detail[0].toUpperCase() + answer.detail.slice(1) : `The service answered with ${request.status}.`);
  });
  request.addEventListener("error", () => end("The connection broke off: is the service still there, and the file not too large?"));
  request.addEventListener("abort", () => end(""));
  request.send(body);
  progress(0, files.reduce((sum, f) => sum + f.size, 0), began);
  complain("");
  say("Uploading.");
  show();
  stop.focus();
}

for (const chosen of [picker, folder])
  chosen.addEventListener("change", () => {
    add([...chosen.files]);
    chosen.value = "";
  });
send.addEventListener("click", upload);
stop.addEventListener("click", () => request?.abort());
form.addEventListener("submit", (e) => e.preventDefault());
for (const event of ["dragenter", "dragover"])
  document.addEventListener(event, (e) => {
    if (!e.dataTransfer?.types.includes("Files")) return;
    e.preventDefault();
    form.classList.add("over");
  });
document.addEventListener("dragleave", (e) => !e.relatedTarget && form.classList.remove("over"));
document.addEventListener("drop", async (e) => {
  e.preventDefault();
  form.classList.remove("over");
  const entries = [...e.dataTransfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  try {
    add(entries.length ? (await Promise.all(entries.map(within))).flat() : [...e.dataTransfer.files]);
  } catch {
    complain("What was dropped cannot be read.");
  }
});
