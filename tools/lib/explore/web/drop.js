import { h, download, real } from "./dom.js";

// Beside is the library compiled to WebAssembly, in a worker beside the page: the document comes from a file that a person drops.
export class Beside {
  constructor() {
    this.worker = new Worker("worker.js");
    this.waiting = new Map();
    this.next = 0;
    this.worker.addEventListener("message", ({ data }) => {
      const w = this.waiting.get(data.id);
      this.waiting.delete(data.id);
      if (data.error !== undefined) w.failed(new Error(data.error));
      else w.done(data.value);
    });
    this.worker.addEventListener("error", (e) => { for (const w of this.waiting.values()) w.failed(new Error(e.message || "the worker has ended: there may be too little memory")); });
  }
  ask(method, ...args) {
    return new Promise((done, failed) => {
      this.waiting.set(++this.next, { done, failed });
      this.worker.postMessage({ id: this.next, method, args });
    });
  }
  async load(file, inputs, opset) {
    const began = performance.now();
    this.file = file;
    this.loaded = JSON.parse(await this.ask("load", file, inputs, opset));
    document.documentElement.dataset.converted = Math.round(performance.now() - began);
  }
  async document() { return this.loaded; }
  async kernels() { return JSON.parse(await this.ask("kernels")); }
  async numbers() { return JSON.parse(await this.ask("numbers")); }
  async pipeline(text) { return JSON.parse(await this.ask("pipeline", text)); }
  get canRun() { return true; }
  get live() { return true; }

  // extras are the buttons that this page has besides.
  extras(app) {
    const said = h("span", { class: "dim", id: "said" });
    const act = (f) => async (e) => {
      e.target.disabled = true;
      said.textContent = "…";
      try { said.textContent = (await f()) || ""; }
      catch (x) { said.textContent = x.message; }
      e.target.disabled = false;
    };
    return [
      app.doc.graph ? h("button", { id: "download", onclick: act(async () => {
        const began = performance.now(), blob = await this.ask("export");
        download(this.file.name.replace(/\.[^.]*$/, "") + ".onnx", blob);
        return `${(blob.size / 1e6).toFixed(1)} MB in ${((performance.now() - began) / 1000).toFixed(1)} s`;
      }) }, "Download") : null,
      app.doc.graph ? h("button", { id: "run-ort", title: "with random inputs, in onnxruntime-web", onclick: act(async () => {
        const r = await this.ask("run");
        show(r);
        return `ran in ${(r.ms / 1000).toFixed(2)} s`;
      }) }, "Run") : null,
      h("button", { onclick: () => location.reload() }, "Another file"), said,
    ];
  }
}

// show tells what onnxruntime-web gave.
function show(r) {
  const close = () => box.remove();
  const box = h("div", { class: "help", role: "dialog", "aria-label": "outputs", tabindex: -1, onclick: (e) => e.target === box && close(), onkeydown: (e) => { e.stopPropagation(); if (e.key === "Escape") close(); } },
    h("div", { id: "outputs" }, h("h2", {}, "Outputs of onnxruntime-web, random inputs"),
      h("p", { class: "dim" }, `session in ${(r.session / 1000).toFixed(2)} s, run in ${(r.ms / 1000).toFixed(2)} s`),
      h("table", {}, h("tbody", {}, r.outputs.map((o) => h("tr", {}, h("td", { class: "mono" }, o.name), h("td", { class: "mono ty" }, `${o.type}[${o.dims}]`), h("td", { class: "mono" }, o.first.map((x) => real(x)).join("  ")))))),
      h("div", { class: "bar" }, h("button", { onclick: close }, "Close"))));
  document.body.append(box);
  box.focus();
}

// chooser asks for a file, and opens the page with it.
export function chooser(source, open) {
  const inputs = h("textarea", { class: "mono", rows: 2, spellcheck: "false", "aria-label": "inputs", placeholder: "x:f32[N,3,224,224]\none a line; an exported program and an ONNX file need none" });
  const opset = h("input", { type: "number", min: 7, max: 28, placeholder: "20", "aria-label": "opset" });
  const said = h("p", { class: "bad", id: "said", role: "status" });
  const picked = h("p", { class: "dim" }, "Nothing leaves this machine.");
  const file = h("input", { type: "file", id: "file", "aria-label": "model", accept: ".pt,.pt2,.pth,.onnx,.ir,.txt", onchange: () => pick(file.files[0]) });
  const go = h("button", { id: "convert", disabled: true, onclick: () => convert() }, "Convert");
  let chosen = null;
  const pick = (f) => {
    if (!f) return;
    chosen = f;
    picked.textContent = `${f.name}, ${(f.size / 1e6).toFixed(1)} MB`;
    go.disabled = false;
    said.textContent = "";
  };
  const convert = async () => {
    go.disabled = true;
    said.textContent = "";
    picked.textContent = "Converting…";
    try {
      await source.load(chosen, inputs.value.split("\n").map((s) => s.trim()).filter((s) => s), +opset.value || 0);
      await open(source);
    } catch (e) {
      said.textContent = e.message;
      pick(chosen);
      said.textContent = e.message;
    }
  };
  const zone = h("div", { class: "drop" }, h("div", {}, h("h1", {}, "aton"), h("p", {}, "Drop a ", h("b", {}, ".pt"), ", ", h("b", {}, ".pt2"), " or ", h("b", {}, ".onnx"), " here, or choose one:"), h("p", {}, file), picked,
    h("h3", {}, "Inputs"), inputs, h("p", {}, "Opset ", opset, " ", go), said));
  zone.addEventListener("dragover", (e) => { e.preventDefault(); zone.classList.add("over"); });
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", (e) => {
    e.preventDefault();
    zone.classList.remove("over");
    pick(e.dataTransfer.files[0]);
  });
  const main = h("main", { class: "alone" }, zone);
  document.body.append(main);
  document.documentElement.dataset.waiting = Math.round(performance.now());
  return main;
}
