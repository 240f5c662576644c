import { Beside } from "./drop.js";

// Where the document comes from: the page itself, the server that gave the page, or a worker beside it. All have the same functions.

class Embedded {
  async document() {
    const text = document.getElementById("payload").textContent;
    const packed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    this.payload = JSON.parse(await new Response(stream).text());
    return this.payload.document;
  }
  async kernels() { return this.payload.kernels || { failed: "the model is not converted", kernels: [], launch: [] }; }
  async numbers() {
    if (!this.payload.numbers) throw new Error("this file was written without numbers: aton explore --html FILE --random, or --data");
    return this.payload.numbers;
  }
  get canRun() { return !!this.payload.numbers; }
  get live() { return false; }
}

class Server {
  async ask(path, options) {
    const r = await fetch(path, options);
    if (!r.ok) throw new Error((await r.text()).trim());
    return r.json();
  }
  document() { return this.ask("document"); }
  kernels() { return this.ask("kernels", { method: "POST" }); }
  numbers() { return this.ask("numbers", { method: "POST" }); }
  pipeline(text) { return this.ask("pipeline", { method: "POST", body: text }); }
  get canRun() { return true; }
  get live() { return true; }
}

export function openSource() {
  switch (document.documentElement.dataset.source) {
    case "embedded": return new Embedded();
    case "server": return new Server();
  }
  return new Beside();
}
