import { h, bytes, download, real } from "./dom.js";

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

// The models that lie beside the page, with what is stated of their inputs.
const samples = [
  ["ResNet-18", "resnet18.pt2", {}, "an exported program"],
  ["BERT", "bert.pt2", {}, "an exported program with attention"],
  ["A search", "search.pt", { first: "i64[2]", limit: "int=4" }, "a scripted loop with a branch"],
];

// chooser asks for a file and its inputs, and opens the page with it.
export function chooser(source, open) {
  const said = h("p", { class: "bad", id: "said", role: "status" });
  const file = h("input", { type: "file", id: "file", "aria-label": "model", accept: ".pt,.pt2,.pth,.onnx,.ir,.txt", onchange: () => pick(file.files[0]) });
  const opset = h("input", { type: "number", min: 7, max: 28, placeholder: "20", id: "opset" });
  const go = h("button", { id: "convert", class: "main", disabled: true, onclick: () => convert() }, "Convert");
  const picked = h("p", { class: "dim", id: "picked" }), rows = h("div", { id: "inputs" });
  const form = h("div", { hidden: true, id: "form" }, picked, rows, h("p", {}, h("label", { for: "opset" }, "ONNX opset "), opset, " ", go));
  let chosen = null, fields = [];
  const busy = (text) => { picked.textContent = text; go.disabled = true; };
  const pick = async (f, stated = {}) => {
    if (!f) return;
    chosen = f;
    said.textContent = "";
    form.hidden = false;
    rows.replaceChildren();
    fields = [];
    busy(`Reading ${f.name}, ${bytes(f.size)}…`);
    try {
      const inputs = JSON.parse(await source.ask("inputs", f));
      if (chosen !== f) return;
      const asks = inputs.filter((i) => i.example);
      fields = asks.map((i) => ({ name: i.name, field: h("input", { class: "mono", type: "text", spellcheck: "false", id: "input-" + i.name, value: stated[i.name] ?? i.example }) }));
      rows.replaceChildren(...asks.length ? [h("h2", {}, "Inputs"), h("p", { class: "dim" }, "A scripted program does not say of what types its inputs are. f32, i64 and bool are types of elements; a number is a size, a name such as N is any size; int=4 is a number that stays 4."),
        h("div", { class: "fields" }, fields.map((x) => [h("label", { class: "mono", for: x.field.id }, x.name), x.field]))]
        : [h("p", { class: "mono dim" }, inputs.map((i) => `${i.name} ${i.type}`).join(", "))]);
      picked.textContent = `${f.name}, ${bytes(f.size)}`;
      go.disabled = false;
    } catch (e) {
      picked.textContent = f.name;
      said.textContent = e.message;
    }
  };
  const convert = async () => {
    said.textContent = "";
    busy("Converting…");
    try {
      await source.load(chosen, fields.map((x) => [x.name, x.field.value.trim()]).filter(([, v]) => v).map(([n, v]) => n + ":" + v), +opset.value || 0);
      await open(source);
    } catch (e) {
      picked.textContent = chosen.name;
      said.textContent = e.message;
      go.disabled = false;
    }
  };
  const sample = async (name, stated) => {
    form.hidden = false;
    busy("Fetching " + name + "…");
    try {
      const r = await fetch("models/" + name);
      if (!r.ok) throw new Error(`models/${name} is not beside the page`);
      await pick(new File([await r.blob()], name), stated);
      if (!go.disabled) await convert();
    } catch (e) { said.textContent = e.message; }
  };
  const zone = h("div", { class: "drop" }, h("div", {}, h("h1", {}, "aton"), h("p", {}, "Converts models of PyTorch to ONNX and shows what becomes of each line, each operator and each number. It runs in this page: nothing leaves your machine."),
    h("p", {}, "Drop a ", h("b", {}, ".pt"), ", ", h("b", {}, ".pt2"), " or ", h("b", {}, ".onnx"), " here, or choose one:"), h("p", {}, file), form, said,
    h("h2", {}, "Or try one of these"), h("div", { class: "samples" }, samples.map(([title, name, stated, what]) => h("button", { onclick: () => sample(name, stated) }, h("b", {}, title), h("span", { class: "dim" }, what)))),
    h("p", { class: "dim" }, "The model can be a file that torch.jit.save, torch.export.save or another converter wrote. ", "onnxruntime-web is loaded only when you run the result.")));
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
