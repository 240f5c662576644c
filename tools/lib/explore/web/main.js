import { h } from "./dom.js";
import { chooser } from "./drop.js";
import { openSource } from "./source.js";
import { nameSizes } from "./sizes.js";
import { Index } from "./index.js";
import { Code } from "./code.js";
import { Picture } from "./graph.js";
import { costView, pipelineView, weightsView, kernelsView, numbersView, problemsView } from "./tables.js";
import { compareView } from "./compare.js";
import { inspect } from "./inspect.js";

const views = [["code", "Source & IR"], ["graph", "Graph"], ["pipeline", "Pipeline"], ["numbers", "Numbers"], ["cost", "Cost"], ["weights", "Weights"], ["kernels", "Kernels"], ["problems", "Problems"], ["compare", "Compared"]];
const tables = { pipeline: pipelineView, numbers: numbersView, cost: costView, weights: weightsView, kernels: kernelsView, problems: problemsView, compare: compareView };
const nothing = { strong: new Set(), weak: new Set(), places: new Set() };

// App is the page: the state, which is in the address, and the views of it.
class App {
  constructor(source, doc) {
    this.source = source;
    this.times = {};
    this.main = h("main", {});
    this.side = h("aside", { "aria-label": "inspector" });
    this.foot = h("footer", {});
    this.open(doc);
    addEventListener("hashchange", () => { if (location.hash !== this.written) { this.read(); this.picture.follow(); this.draw(); this.reveal(); } });
    addEventListener("keydown", (e) => this.key(e));
  }

  // open shows a document.
  open(doc) {
    nameSizes(doc);
    this.doc = doc;
    this.index = new Index(doc);
    this.kernels = this.source.payload?.kernels || null;
    this.numbers = this.source.payload?.numbers || null;
    this.hovered = nothing;
    this.read();
    this.header = this.head();
    this.code = new Code(this);
    this.picture = new Picture(this);
    document.body.replaceChildren(...[...document.querySelectorAll("script")], this.header, this.main, this.side, this.foot);
    document.title = doc.model.split(/[\\/]/).pop() + " – aton explore";
    this.draw();
    this.reveal();
  }

  head() {
    const { doc } = this, problems = doc.problems.filter((p) => p.severity === "error").length, warnings = doc.problems.filter((p) => p.severity === "warning").length;
    this.views = views.filter(([id]) => id !== "compare" || doc.comparison);
    this.tabs = this.views.map(([id, name], i) => h("button", { role: "tab", id: "tab-" + id, "aria-selected": "false", title: `${i + 1}`, onclick: () => this.set({ view: id }) }, name,
      id === "problems" && problems ? h("span", { class: "badge" }, problems) : id === "problems" && warnings ? h("span", { class: "badge warn" }, warnings) : null));
    this.input = h("input", { type: "search", placeholder: "Search  /", "aria-label": "search by name, operator or type", oninput: () => this.search(), onkeydown: (e) => this.searchKey(e), onblur: () => setTimeout(() => this.found.replaceChildren(), 200) });
    this.found = h("ul", { class: "results", role: "listbox", hidden: true });
    return h("header", {}, h("h1", { title: doc.model }, doc.model.split(/[\\/]/).pop()), h("span", { class: "meta" }, doc.graph ? `opset ${doc.opset}, ${doc.graph.nodes.length} nodes` : h("b", { class: "bad" }, "not converted")),
      this.source.extras ? this.source.extras(this) : null, h("nav", { role: "tablist", "aria-label": "views" }, this.tabs), h("div", { class: "search" }, this.input, this.found),
      h("button", { "aria-label": "dark or light", title: "dark or light (t)", onclick: () => this.theme() }, "◐"), h("button", { "aria-label": "keys", title: "keys (?)", onclick: () => this.help() }, "?"));
  }

  // read takes the state from the address.
  read() {
    const q = new URLSearchParams(location.hash.slice(1)), last = this.doc.stages.length - 1;
    const number = (name, usual, most) => (/^\d+$/.test(q.get(name) || "") ? Math.min(+q.get(name), most) : usual);
    this.state = {
      view: views.some(([id]) => id === q.get("view") && (id !== "compare" || this.doc.comparison)) ? q.get("view") : this.doc.failed ? "problems" : this.doc.graph ? "graph" : "code",
      left: number("left", this.functional(), last), right: number("right", last, last), op: number("op", null, this.doc.ops.length - 1), place: q.get("line"), value: q.get("value"),
      open: q.get("open"), graph: number("graph", null, last), colour: q.get("colour") || (this.doc.comparison ? "change" : "operator"), kernel: number("kernel", 0, 1e9), weight: number("weight", 0, this.doc.weights.length - 1), code: ["kir", "llvm", "ptx", "plan"].includes(q.get("code")) ? q.get("code") : "kir",
    };
    this.written = location.hash;
    if (this.state.op !== null && this.state.op < 0) this.state.op = null;
    if (this.state.op !== null && this.state.place === null) this.state.place = this.index.placeOf(this.state.op) || null;
    this.relate();
  }

  // functional is the stage in which the program has no modules, branches on constants or writes any more: the one to compare with.
  functional() {
    const pass = this.doc.passes.find((p) => p.name === "specialize");
    return pass && pass.stage < this.doc.stages.length - 1 ? pass.stage : 0;
  }

  relate() { this.related = this.index.related(this.state); }

  // set changes the state, writes it into the address, and draws; quiet leaves the drawing to the caller. Another view or selection is a step
  // that the browser goes back from. What the page begins with is not in the address.
  set(change, quiet) {
    Object.assign(this.state, change);
    const q = new URLSearchParams(), s = this.state, usual = { left: this.functional(), right: this.doc.stages.length - 1, colour: this.doc.comparison ? "change" : "operator" };
    q.set("view", s.view);
    for (const [name, key] of [["left", "left"], ["right", "right"], ["op", "op"], ["line", "place"], ["value", "value"], ["open", "open"], ["graph", "graph"], ["colour", "colour"]]) {
      if (s[key] !== null && (s[key] !== "" || key === "open") && s[key] !== usual[key]) q.set(name, s[key]);
    }
    if (s.view === "kernels") { q.set("kernel", s.kernel); q.set("code", s.code); }
    if (s.view === "weights") q.set("weight", s.weight);
    const step = ["view", "op", "place", "value", "kernel", "weight", "graph", "colour"].some((key) => key in change), next = "#" + q;
    if (next !== this.written) history[step ? "pushState" : "replaceState"](null, "", next);
    this.written = next;
    if (!quiet) this.draw();
  }

  select(sel) {
    Object.assign(this.state, sel);
    this.relate();
    this.set(sel);
    this.reveal();
  }

  selectNode(i) {
    const op = this.doc.graph.nodes[i].op;
    this.select({ op, place: this.index.placeOf(op) || null, value: null });
  }

  // showPass shows a pass: what was before it on the left, and what it left on the right.
  showPass(i) {
    const stage = this.doc.passes[i].stage;
    this.set({ view: "code", left: Math.max(0, stage - (this.doc.stages[stage].pass === i ? 1 : 0)), right: stage });
    this.reveal();
  }

  stage(side) { return this.doc.stages[this.state[side]]; }
  usual() { return [...new Set(this.doc.passes.map((p) => p.text))].join(","); }
  measure(what, ms) { this.times[what] = ms; }

  hover(place, op) {
    const next = place || op >= 0 ? this.index.related({ op: op >= 0 ? op : null, place, value: null }) : nothing;
    this.hovered = next;
    for (const list of [this.code.sources.list, this.code.left.list, this.code.right.list]) {
      // rows are marked where they are: drawing them anew would lose the click
      for (const row of list.room.children) {
        const i = +row.dataset.i;
        let on = false;
        if (list === this.code.sources.list) {
          const s = this.doc.sources[this.code.file];
          on = next.places.has(s.file + ":" + s.lines[i].n);
        } else {
          const side = list === this.code.left.list ? "left" : "right", at = this.code.rows[i] && !this.code.rows[i].fold ? this.code.rows[i][side] : -1;
          const o = at >= 0 ? this.stage(side).ops[at] : -1;
          on = o >= 0 && (next.strong.has(o) || next.weak.has(o));
        }
        row.classList.toggle("hover", on);
      }
    }
  }

  draw() {
    const { state, doc } = this;
    // first, since it takes room from the picture
    this.foot.replaceChildren(h("span", {}, "aton " + doc.version.split(" ")[0]), h("span", {}, `${doc.stages.length} stages, ${doc.passes.length} passes`), h("span", {}, "click: what belongs together · / search · ? keys"), doc.failed ? h("span", { class: "bad" }, doc.failed.split("\n")[0]) : "");
    this.tabs.forEach((t, i) => t.setAttribute("aria-selected", this.views[i][0] === state.view ? "true" : "false"));
    this.tabs.find((t) => t.getAttribute("aria-selected") === "true").scrollIntoView({ inline: "nearest", block: "nearest" });
    if (state.view === "code") {
      if (this.main.lastChild !== this.code.element) this.main.replaceChildren(this.code.panes, this.code.element);
      this.code.draw();
    } else if (state.view === "graph") {
      if (this.main.firstChild !== this.picture.bar) this.main.replaceChildren(this.picture.bar, this.picture.element);
      this.picture.draw();
    } else this.main.replaceChildren(tables[state.view](this));
    this.side.replaceChildren(h("button", { class: "close", "aria-label": "close the details", onclick: () => this.select({ op: null, place: null, value: null }) }, "×"), ...inspect(this).flat(3).filter((e) => e));
    document.body.classList.toggle("chosen", state.op !== null || !!state.place || state.value !== null);
  }

  // reveal brings what is selected into sight.
  reveal() {
    const { state } = this;
    if (state.view === "code" && (state.op !== null || state.place)) this.code.reveal();
    if (state.view === "graph") {
      const node = this.picture.nodeFor();
      if (node !== undefined) {
        this.picture.reveal(node);
        this.picture.mark();
      }
    }
  }

  launchesOf(op) {
    const node = this.index.nodeOf.get(op);
    if (node === undefined || !this.kernels) return [];
    const names = new Set(this.doc.graph.nodes[node].out.flatMap((v) => [this.doc.graph.values[v].text, this.doc.graph.values[v].name]));
    const out = [];
    this.kernels.launch.forEach((l, i) => { if (l.nodes.some((n) => n !== "" && names.has(n))) out.push(i); });
    // values that only have a number have other ones in the plan: the place tells
    if (!out.length) this.kernels.launch.forEach((l, i) => { if (l.frames.includes(this.doc.ops[op].frame)) out.push(i); });
    return out;
  }

  async loadKernels() {
    if (this.loading) return;
    this.loading = true;
    try { this.kernels = await this.source.kernels(); }
    catch (e) { this.kernels = { failed: e.message, kernels: [], launch: [] }; }
    this.loading = false;
    this.draw();
  }

  async loadNumbers() {
    this.main.replaceChildren(h("div", { class: "busy" }, "Running…"));
    try { this.numbers = await this.source.numbers(); }
    catch (e) { this.numbers = { failed: e.message }; }
    this.draw();
  }

  async pipeline(text) {
    const doc = await this.source.pipeline(text);
    history.replaceState(null, "", "#view=pipeline");
    this.open(doc);
  }

  search() {
    const q = this.input.value.trim().toLowerCase(), out = [], g = this.doc.graph;
    const add = (title, detail, act) => out.length < 60 && out.push([title, detail, act]);
    if (q && g) {
      const words = q.split(/\s+/);
      g.nodes.forEach((n, i) => {
        const type = n.out.length ? g.values[n.out[0]].type : "", text = `${n.kind} ${n.name} ${n.module || ""} ${(n.also || []).join(" ")} ${n.out.map((v) => g.values[v].name + " " + g.values[v].type).join(" ")}`.toLowerCase();
        if (words.every((w) => text.includes(w))) add(n.kind, `${[...(n.also || []), n.module || n.name].join(", ")} ${type}`, () => this.selectNode(i));
      });
      this.doc.weights.forEach((w, i) => { if (words.every((x) => `${w.name} ${w.dtype}`.toLowerCase().includes(x))) add(w.name, `${w.dtype}[${w.shape}]`, () => this.set({ view: "weights", weight: i })); });
    } else if (q) {
      this.doc.ops.forEach((o, i) => { if (o.kind.toLowerCase().includes(q)) add(o.kind, this.index.placeOf(i), () => this.select({ op: i, place: this.index.placeOf(i) || null, value: null })); });
    }
    this.hits = out;
    this.hit = 0;
    this.found.hidden = !q;
    this.found.replaceChildren(...!out.length && q ? [h("li", { class: "dim", role: "option", "aria-disabled": "true" }, "nothing has this name, kind or type")] : out.map(([t, d, act], i) => h("li", { role: "option", "aria-selected": i === 0 ? "true" : "false", onmousedown: (e) => { e.preventDefault(); this.pickHit(act); } }, h("b", {}, t), h("span", { class: "dim" }, d))));
  }

  pickHit(act) {
    this.found.hidden = true;
    this.input.blur();
    act();
  }

  searchKey(e) {
    if (e.key === "Escape") { this.input.value = ""; this.search(); this.input.blur(); }
    if (!this.hits || !this.hits.length) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (step) {
      e.preventDefault();
      this.hit = (this.hit + step + this.hits.length) % this.hits.length;
      [...this.found.children].forEach((li, i) => li.setAttribute("aria-selected", i === this.hit ? "true" : "false"));
      this.found.children[this.hit].scrollIntoView({ block: "nearest" });
    }
    if (e.key === "Enter") this.pickHit(this.hits[this.hit][2]);
  }

  theme(to) {
    const root = document.documentElement;
    root.dataset.theme = to || (root.dataset.theme === "dark" ? "light" : "dark");
    if (!to) try { localStorage.setItem("aton-theme", root.dataset.theme); } catch { /* a file may have no storage */ }
    if (this.picture && this.picture.svg) { this.picture.paint(); this.picture.mark(); }
  }

  help() {
    const close = () => box.remove();
    const keys = [["1 … 8", "views"], ["/", "search"], ["[ and ]", "the stage before, the next stage (right)"], ["↑ ↓ j k", "the line above, below"], ["+ − f", "zoom, fit the graph"], ["t", "dark or light"], ["Esc", "select nothing"]];
    const box = h("div", { class: "help", role: "dialog", "aria-label": "keys", tabindex: -1, onclick: close, onkeydown: (e) => { e.stopPropagation(); close(); } }, h("div", {}, h("h2", {}, "Keys"), h("dl", {}, keys.map(([k, t]) => [h("dt", {}, h("kbd", {}, k)), h("dd", {}, t)]))));
    document.body.append(box);
    box.focus();
  }

  key(e) {
    if (e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName)) return;
    const n = +e.key;
    if (n >= 1 && n <= this.views.length) { this.set({ view: this.views[n - 1][0] }); this.reveal(); }
    else if (e.key === "/") { e.preventDefault(); this.input.focus(); this.input.select(); }
    else if (e.key === "[") this.set({ right: Math.max(0, this.state.right - 1) });
    else if (e.key === "]") this.set({ right: Math.min(this.doc.stages.length - 1, this.state.right + 1) });
    else if (e.key === "t") this.theme();
    else if (e.key === "?") this.help();
    else if (e.key === "Escape") this.select({ op: null, place: null, value: null });
    else if (this.state.view === "graph" && (e.key === "+" || e.key === "=")) this.picture.zoom(1.25);
    else if (this.state.view === "graph" && e.key === "-") this.picture.zoom(0.8);
    else if (this.state.view === "graph" && e.key === "f") this.picture.fit();
  }
}

// theme is what was chosen the last time, or what the system has.
function theme() {
  let chosen = null;
  try { chosen = localStorage.getItem("aton-theme"); } catch { /* a file may have no storage */ }
  document.documentElement.dataset.theme = chosen || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
}

// start opens the page with a document.
async function start(source) {
  const root = document.documentElement;
  theme();
  document.body.append(h("div", { class: "busy" }, "Reading the model…"));
  try {
    const app = new App(source, await source.document());
    root.dataset.ready = Math.round(performance.now());
    return app;
  } catch (e) {
    document.body.append(h("div", { class: "busy bad" }, e.message));
    throw e;
  }
}

const source = openSource();
if (source.file === undefined && source.load) {
  theme();
  const asks = chooser(source, async () => {
    const app = new App(source, await source.document());
    asks.remove();
    document.documentElement.dataset.ready = Math.round(performance.now());
    return app;
  });
} else start(source);
