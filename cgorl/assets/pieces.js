// Files in pieces that a notebook's connection takes, one asked for or sent when the one before it has arrived.

export const megabytes = (n) => (n < 100_000 ? `${Math.max(1, Math.round(n / 1000))} kB` : `${(n / 1e6).toFixed(n < 1e7 ? 1 : 0)} MB`);

export class Pieces {
  constructor(model, size) {
    this.model = model;
    this.size = size;
    this.waiting = null;
  }

  // What the kernel answers goes here; whether it was for this.
  told(content, buffers) {
    const mine = ["upload", "download"].includes(content.kind) || (content.kind === "why" && ["upload", "download"].includes(content.about));
    if (!mine || !this.waiting) return false;
    const answer = this.waiting;
    this.waiting = null;
    answer([content, buffers]);
    return true;
  }

  ask(content, buffers) {
    return new Promise((answer) => {
      this.waiting = answer;
      this.model.send(content, undefined, buffers);
    });
  }

  // Where the kernel put the file; throws with a sentence.
  async upload(file, tell) {
    for (let at = 0; ; ) {
      const part = await file.slice(at, at + this.size).arrayBuffer();
      const [answer] = await this.ask({ kind: "upload", name: file.name, at, size: file.size }, [part]);
      const why = answer.why || (answer.kind === "why" && answer.text);
      if (why) throw new Error(why);
      if (answer.path) return answer.path;
      at = answer.next;
      tell(at / file.size);
    }
  }

  async download(k, name, size, tell) {
    const parts = [];
    for (let at = 0; at < size; ) {
      const [answer, buffers] = await this.ask({ kind: "download", file: k, at });
      if (answer.kind === "why") throw new Error(answer.text);
      const part = new Uint8Array(buffers[0].buffer, buffers[0].byteOffset, buffers[0].byteLength);
      if (!part.length) throw new Error(`'${name}' is not as long any more as it was: it was written anew`);
      parts.push(part.slice());
      at += part.length;
      tell(at / size);
    }
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob(parts, { type: "application/octet-stream" }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }
}
