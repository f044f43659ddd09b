// A model as the widgets of cgorl/assets know it, of what the service keeps in files: no kernel stands behind it.

export class Kept {
  /** `values` by name; `answer(content, model)` gives what a kernel would send back as buffers, or nothing. */
  constructor(values, answer) {
    this.values = values;
    this.answer = answer;
    this.heard = new Map();
  }

  get(name) {
    return this.values[name];
  }

  set(name, value) {
    if (this.values[name] === value) return;
    this.values[name] = value;
    this.tell(`change:${name}`);
  }

  save_changes() {}

  on(event, hear) {
    this.heard.set(event, [...(this.heard.get(event) || []), hear]);
  }

  off(event, hear) {
    this.heard.set(event, (this.heard.get(event) || []).filter((h) => h !== hear));
  }

  tell(event, ...what) {
    for (const hear of this.heard.get(event) || []) hear(...what);
  }

  async send(content) {
    const buffers = await this.answer(content, this);
    if (buffers) this.tell("msg:custom", content, buffers);
  }
}

/** The bytes at an address, as widgets take them. Throws with a sentence. */
export async function bytes(url) {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error("This drawing is not there any more.");
  return new DataView(await answer.arrayBuffer());
}
