import { h, svg, download, count } from "./dom.js";
import { tree, opened, closed, shape, place } from "./layout.js";
import { stageGraph } from "./stage.js";
import { family, mix, schemes, paints } from "./colour.js";
import { union } from "./compare.js";

const most = 500; // boxes that are drawn
const begun = 16; // boxes up to which modules are open at first
const least = 11; // pixels of the text that the picture begins with
const labelled = 160; // arrows, up to which each has its type beside it
const stripes = ["matrix", "act", "norm", "move", "flow", "elem"];

const pen = document.createElement("canvas").getContext("2d"), lengths = new Map();

// wide is the width of a text, in bold or small letters.
function wide(text, bold) {
  const key = (bold ? "b" : "s") + text;
  let w = lengths.get(key);
  if (w === undefined) {
    pen.font = (bold ? "600 12px " : "10px ") + letters;
    lengths.set(key, (w = pen.measureText(text).width));
  }
  return w;
}

const letters = "system-ui, 'Liberation Sans', sans-serif";

// The picture's own style, so that it looks the same when it is saved. Colours are those of the page.
const colours = ["bg", "panel", "line", "text", "dim", "accent", "hit", "soft", "bad", "warn", "node", "group", "matrix", "act", "norm", "move", "flow", "elem"];

// Picture shows the converted graph.
export class Picture {
  constructor(app) {
    this.app = app;
    const { doc } = app, last = doc.stages.length - 1;
    this.element = h("div", { class: "graph" });
    this.legend = h("div", { class: "legend" });
    this.map = h("div", { class: "minimap", "aria-hidden": "true" });
    this.chosen = h("select", { "aria-label": "graph", title: "the ONNX graph, or that of a stage", onchange: () => app.set({ graph: this.chosen.value === "" ? null : +this.chosen.value, open: null, view: "graph" }) },
      doc.graph ? h("option", { value: "" }, "ONNX graph") : null, doc.stages.map((s, i) => (doc.graph && i === last ? null : h("option", { value: i }, `${i} · ${s.name}`))));
    this.colouring = h("select", { "aria-label": "colour", title: "what the boxes are coloured by", onchange: () => app.set({ colour: this.colouring.value }) },
      Object.entries(schemes).map(([id, s]) => (id === "change" && !doc.comparison ? null : h("option", { value: id }, s.title))));
    this.bar = h("div", { class: "bar", role: "toolbar", "aria-label": "graph" },
      h("button", { onclick: () => this.fit(), title: "f" }, "Fit"), h("button", { onclick: () => this.zoom(1.25), title: "+", "aria-label": "larger" }, "+"), h("button", { onclick: () => this.zoom(0.8), title: "-", "aria-label": "smaller" }, "−"),
      h("button", { onclick: () => this.openAll() }, "Open all"), h("button", { onclick: () => this.setOpen(new Set([""]), null) }, "Close all"),
      this.sizing = h("button", { "aria-pressed": "false", title: "operators that depend on sizes alone: shapes, positions, masks", onclick: () => { this.sizes = !this.sizes; this.draw(true); } }, "Sizes & masks"),
      this.chosen, h("label", { class: "dim" }, "colour ", this.colouring), h("button", { onclick: () => this.save("svg") }, "SVG"), h("button", { onclick: () => this.save("png") }, "PNG"),
      this.note = h("span", { class: "dim note" }));
    this.graphs = new Map(); // by number of stage, null for the converted model
    this.sizes = false;
    this.follow();
  }

  // follow shows the graph, and opens the groups, that the address names.
  follow() {
    const { doc, state } = this.app, stage = state.graph ?? (doc.graph ? null : doc.stages.length - 1);
    if (!this.graphs.has(stage)) {
      const graph = stage !== null ? stageGraph(doc, doc.stages[stage]) : doc.comparison ? union(doc.graph, doc.comparison) : doc.graph;
      this.graphs.set(stage, { graph, tree: tree(graph), nodeOf: new Map(graph.nodes.map((n, i) => [n.op, i])) });
    }
    Object.assign(this, this.graphs.get(stage), { stage });
    this.chosen.value = stage === null ? "" : String(stage);
    this.open = state.open === null ? closed(this.tree, begun) : new Set(["", ...state.open.split(",").filter((x) => x)]);
    if (state.open === null && this.graph.compared) { // what is different is in sight
      const news = this.graph.nodes.map((n, i) => i).filter((i) => this.graph.nodes[i].change !== "same");
      if (news.length <= 40) for (const i of news) for (let g = this.tree.leaves[i].parent; g; g = g.parent) this.open.add(g.id);
    }
    this.shownOpen = state.open;
    this.svg = null;
    this.box = null;
  }

  // setOpen opens these groups. The box named stays where it is in sight; null shows the whole picture.
  setOpen(open, keep) {
    const before = keep && this.boxes && this.boxes.get(keep);
    this.open = open;
    this.shownOpen = [...open].filter((x) => x).join(",");
    this.app.set({ open: this.shownOpen }, true);
    if (keep === null) this.box = null;
    this.draw(true);
    const after = before && this.boxes.get(keep);
    if (!after) return;
    this.box[0] += after.x - before.x;
    this.box[1] += after.y - after.height / 2 - before.y + before.height / 2;
    this.look();
  }

  openAll() { this.setOpen(opened(this.tree, most), null); }

  toggle(id) {
    const open = new Set(this.open);
    if (open.has(id)) for (const o of this.open) { if (o === id || o.startsWith(id + ".")) open.delete(o); }
    else {
      open.add(id);
      // what is inside opens as far as it stays small
      const only = this.tree.groups.get(id).children;
      if (only.length === 1 && only[0].children) open.add(only[0].id);
    }
    this.setOpen(open, "g" + id);
  }

  // nodeFor is the node of this graph that belongs to what is selected.
  nodeFor() {
    const { state, related, index } = this.app;
    let node = state.op !== null ? this.nodeOf.get(state.op) : undefined;
    if (node === undefined) for (const o of related.strong) if ((node = this.nodeOf.get(o)) !== undefined) break;
    if (node === undefined && state.value !== null && this.stage === null) node = index.makerOf.get(index.valueOf.get(state.value));
    if (node === undefined) for (const o of related.weak) if ((node = this.nodeOf.get(o)) !== undefined) break;
    return node;
  }

  // reveal opens the groups that a node is in.
  reveal(node) {
    if (this.tree.leaves[node].sizes && !this.sizes) {
      this.sizes = true;
      this.draw(true);
    }
    const open = new Set(this.open);
    for (let g = this.tree.leaves[node].parent; g; g = g.parent) open.add(g.id);
    if (open.size !== this.open.size) this.setOpen(open);
    const box = this.boxes.get("n" + node);
    if (!box) return;
    const [x, y, w, hgt] = this.box;
    if (box.x < x + w * 0.05 || box.x > x + w * 0.95 || box.y < y + hgt * 0.05 || box.y > y + hgt * 0.95) this.center(box);
  }

  label(b) {
    const g = this.graph;
    if (b.group) {
      const title = b.group.title || "model";
      return [title, b.group.equal ? `${b.group.equal} modules of ${b.group.nodes / b.group.equal} nodes` : b.group.part ? `${b.group.nodes} nodes` : b.node !== undefined ? `${b.group.nodes} nodes in its bodies` : `${b.group.nodes} node${b.group.nodes === 1 ? "" : "s"}`];
    }
    if (b.value !== undefined) return [b.title, g.values[b.value].type];
    const n = g.nodes[b.node], leaf = this.tree.leaves[b.node];
    const constants = n.in.map((v, i) => [v >= 0 ? g.values[v] : {}, (g.operands[n.kind] || [])[i] || ""]).map(([v, name]) => (v.note && v.note !== "None" ? (name ? name + "=" : "") + v.note : v.weight >= 0 ? `${name} ${(/\[(.*)\]/.exec(v.type) || ["", ""])[1].replaceAll(",", "×")}`.trim() : ""));
    const parts = n.bodies ? [] : constants.filter((c) => c).concat((n.attrs || []).filter((a) => !a.usual).map((a) => (a.name ? `${a.name}=` : "") + a.text));
    let detail = parts.length ? parts.shift() : "";
    while (parts.length && detail.length + parts[0].length < 33) detail += ", " + parts.shift();
    return [n.kind + (n.bodies ? " results" : "") + (leaf.module ? " " + leaf.module : ""), detail.length > 34 ? detail.slice(0, 33) + "…" : detail];
  }

  // draw lays out and draws what is open; again is true after a change of that.
  draw(again) {
    const { doc, state } = this.app, stage = state.graph ?? (doc.graph ? null : doc.stages.length - 1);
    if (stage !== this.stage || (state.open !== this.shownOpen && this.svg)) this.follow();
    if (!this.svg || again) this.build();
    this.mark();
  }

  build() {
    const g = this.graph;
    let s = shape(g, this.tree, this.open, this.sizes);
    this.sizing.setAttribute("aria-pressed", this.sizes ? "true" : "false");
    if (s.boxes.size > most) {
      this.open = opened(this.tree, most / 2);
      s = shape(g, this.tree, this.open, this.sizes);
      this.note.textContent = `more than ${most} boxes: some stay closed`;
    } else {
      const away = this.sizes ? 0 : this.tree.leaves.filter((l) => l.sizes).length;
      this.note.textContent = `${s.boxes.size} boxes for ${g.nodes.length} nodes`;
      this.note.title = [away ? `${away} nodes of sizes and masks are left out` : "", this.tree.groups.size > 1 ? "click a module to open or close it" : ""].filter((x) => x).join("; ");
    }
    const labels = s.arrows.length <= labelled;
    for (const a of s.arrows) a.label = a.values.length === 1 ? g.values[a.values[0]].type : `${a.values.length} tensors`;
    for (const b of s.boxes.values()) b.label = this.label(b);
    const began = performance.now();
    this.size = place(s, (b) => ({ width: Math.max(76, 24 + wide((b.group ? "+ " : "") + b.label[0], true), 24 + wide(b.label[1], false)), height: b.label[1] ? 40 : 28 }), labels, (text) => wide(text, false));
    this.app.measure("layout", performance.now() - began);
    this.boxes = s.boxes;
    const layer = [], front = [], texts = [];
    for (const b of s.boxes.values()) {
      const x = b.x - b.width / 2, y = b.y - b.height / 2;
      const cls = b.group ? (b.open ? "open" : "group") : b.value !== undefined ? "io" : family(g.nodes[b.node].kind);
      const pick = () => {
        if (b.group) this.toggle(b.group.id);
        else if (b.node !== undefined && g.nodes[b.node].op < 0) return; // of the older model
        else if (b.node !== undefined) this.app.select({ op: g.nodes[b.node].op, place: this.app.index.placeOf(g.nodes[b.node].op) || null, value: null });
        else this.app.select({ op: null, place: null, value: g.values[b.value].text });
      };
      const e = svg("g", { class: "box " + cls, tabindex: 0, role: "button", "aria-label": (b.group ? (b.open ? "− " : "+ ") : "") + b.label.filter((t) => t).join(" "), "aria-expanded": b.group ? (b.open ? "true" : "false") : null, "data-id": b.id,
        onclick: (ev) => { if (!this.moved) { ev.stopPropagation(); pick(); } },
        onkeydown: (ev) => { if (ev.key === "Enter" || ev.key === " ") { ev.preventDefault(); pick(); } } },
        svg("title", {}, b.group ? `${b.group.id}\n${b.label[1]}` : b.node !== undefined ? `${g.nodes[b.node].name}\n${b.label.join("\n")}` : b.label.join("\n")),
        svg("rect", { x, y, width: b.width, height: b.height, rx: b.value !== undefined ? 14 : 6 }));
      if (!b.open && !b.group && b.value === undefined) e.append(svg("rect", { class: "stripe", x, y: y + 3, width: 4, height: b.height - 6, rx: 2 }));
      if (b.open) texts.push(svg("text", { class: "t left", x: x + 8, y: y + 14 }, "− " + (b.group.title || "")));
      else {
        e.append(svg("text", { class: "t", x: b.x, y: b.label[1] ? b.y - 2 : b.y + 4 }, (b.group ? "+ " : "") + b.label[0]));
        if (b.label[1]) e.append(" ", svg("text", { class: "d", x: b.x, y: b.y + 12 }, b.label[1]));
      }
      b.element = e;
      (b.open ? layer : front).push(e);
    }
    const arrows = [];
    for (const a of s.arrows) {
      const p = a.points;
      let d = `M${p[0].x.toFixed(1)} ${p[0].y.toFixed(1)}`;
      for (let i = 1; i < p.length - 1; i++) {
        const mx = i === p.length - 2 ? p[i + 1].x : (p[i].x + p[i + 1].x) / 2, my = i === p.length - 2 ? p[i + 1].y : (p[i].y + p[i + 1].y) / 2;
        d += `Q${p[i].x.toFixed(1)} ${p[i].y.toFixed(1)} ${mx.toFixed(1)} ${my.toFixed(1)}`;
      }
      if (a.corners) d = a.corners;
      else if (p.length === 2) d += `L${p[1].x.toFixed(1)} ${p[1].y.toFixed(1)}`;
      const gone = a.values.every((v) => g.values[v].removed);
      arrows.push(svg("path", { class: "arrow" + (gone ? " gone" : ""), d, "marker-end": "url(#tip)" }, svg("title", {}, a.values.map((v) => `${g.values[v].name}: ${g.values[v].type}`).join("\n"))));
      if (labels && a.at) texts.push(svg("text", { class: "e", x: a.at.x - wide(a.label, false) / 2, y: a.at.y + 3 }, a.label));
    }
    this.style = svg("style", {});
    this.svg = svg("svg", { xmlns: "http://www.w3.org/2000/svg", role: "group", "aria-label": this.stage === null ? "the ONNX graph" : "the graph of " + this.app.doc.stages[this.stage].name },
      svg("defs", {}, svg("marker", { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 6, markerHeight: 6, orient: "auto" }, svg("path", { class: "tip", d: "M0 0L8 4L0 8z" }))),
      layer.length ? layer : null, arrows, texts, front);
    this.element.replaceChildren(this.svg, this.map, h("div", { class: "corner" }, this.legend));
    this.overview();
    this.paint();
    this.drag();
    if (!this.box) this.begin();
    else this.look();
  }

  // paint gives the shapes their colours as attributes: the picture needs no style sheet where it is saved.
  paint() {
    const css = getComputedStyle(document.documentElement), c = {};
    for (const name of colours) c[name] = css.getPropertyValue("--" + name).trim();
    const each = (selector, props) => this.svg.querySelectorAll(selector).forEach((e) => { for (const [k, v] of Object.entries(props)) e.setAttribute(k, v); });
    each("text", { "font-family": letters, "text-anchor": "middle", fill: c.dim });
    each(".t", { "font-size": 12, "font-weight": 600, fill: c.text });
    each(".t.left", { "text-anchor": "start" });
    each(".d, .e", { "font-size": 10 });
    each(".e", { "text-anchor": "start" });
    each(".e, .t.left", { stroke: c.bg, "stroke-width": 3, "stroke-linejoin": "round", "paint-order": "stroke" }); // arrows may pass below
    each(".arrow", { fill: "none", stroke: c.move, "stroke-width": 1.2 });
    each(".gone", { stroke: c.bad, "stroke-dasharray": "5 4" });
    each(".tip", { fill: c.move });
    each(".box > rect", { fill: c.node, stroke: c.line, "stroke-width": 1 });
    each(".group > rect", { fill: c.group, stroke: c.accent, "stroke-width": 1 });
    each(".open > rect", { fill: c.group, "fill-opacity": 0.55, stroke: c.line, "stroke-dasharray": "4 3" });
    each(".io > rect", { fill: c.panel, stroke: c.dim });
    for (const f of stripes) each(`.${f} > .stripe`, { fill: c[f], stroke: "none" });
    this.colours = c;
  }

  // mark shows what is selected, what a run has found, what is wrong, and the colours that are asked for.
  mark() {
    const { app, graph } = this, { related, state, numbers, index } = app, c = this.colours;
    if (!c) return;
    const dark = document.documentElement.dataset.theme === "dark", shown = new Map();
    for (const b of this.boxes.values()) if (!b.open) shown.set(b, (b.group ? this.inside(b.group) : b.node !== undefined ? [b.node] : []).map((i) => graph.nodes[i]));
    const name = schemes[state.colour] ? state.colour : "operator", scheme = schemes[name].of(app, graph);
    const painted = name !== "operator" && typeof scheme !== "string" ? paints(scheme, graph.nodes, [...shown.values()].filter((l) => l.length), c, dark) : null;
    this.colouring.value = name;
    this.legend.replaceChildren(...name === "operator" ? [] : typeof scheme === "string" ? [h("span", { class: "warn" }, scheme)] : painted.legend.map(([colour, text]) => h("span", {}, svg("svg", { width: 11, height: 11, "aria-hidden": "true" }, svg("rect", { width: 11, height: 11, rx: 2, fill: colour, stroke: c.line })), text)));
    for (const [b, nodes] of shown) {
      const strong = nodes.some((n) => n.op === state.op || related.strong.has(n.op)) || (b.value !== undefined && graph.values[b.value].text === state.value);
      const weak = !strong && nodes.some((n) => related.weak.has(n.op));
      const outs = nodes.flatMap((n) => n.out).map((v) => graph.values[v].text);
      const wrong = (numbers && outs.includes(numbers.wrong)) || nodes.some((n) => index.wrong.has(n.op)), nan = numbers && outs.includes(numbers.nan);
      const stripe = name === "operator" && b.node !== undefined && !b.group ? c[family(graph.nodes[b.node].kind)] : null;
      const rect = b.element.querySelector("rect"), fill = painted ? painted.fill(nodes) : stripe ? mix(c.node, stripe, dark ? 0.2 : 0.1) : null;
      rect.setAttribute("fill", strong ? c.hit : fill || (weak ? c.soft : b.group ? c.group : b.value !== undefined ? c.panel : c.node));
      rect.setAttribute("stroke", wrong ? c.bad : nan ? c.warn : strong ? c.accent : b.group ? c.accent : b.value !== undefined ? c.dim : c.line);
      b.spot.setAttribute("fill", wrong ? c.bad : strong ? c.accent : stripe || fill || c.move);
      rect.setAttribute("stroke-width", wrong || nan ? 3 : strong ? 2 : 1);
    }
  }

  // overview makes the small picture of it all in the corner, which says what is in sight and leads elsewhere.
  overview() {
    const { width, height } = this.size, k = Math.min(150 / width, 170 / height);
    const frame = svg("rect", { class: "frame" });
    const small = svg("svg", { width: Math.max(20, width * k), height: Math.max(20, height * k), viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none" },
      [...this.boxes.values()].filter((b) => !b.open).map((b) => b.spot = svg("rect", { class: "spot", x: b.x - b.width / 2, y: b.y - b.height / 2, width: b.width, height: b.height })), frame);
    const go = (e) => {
      const r = small.getBoundingClientRect();
      this.box[0] = ((e.clientX - r.left) / r.width) * width - this.box[2] / 2;
      this.box[1] = ((e.clientY - r.top) / r.height) * height - this.box[3] / 2;
      this.look();
    };
    small.addEventListener("pointerdown", (e) => { small.setPointerCapture(e.pointerId); go(e); });
    small.addEventListener("pointermove", (e) => { if (e.buttons) go(e); });
    this.map.replaceChildren(small);
    this.frame = frame;
  }

  inside(g) {
    if (!g.all) g.all = g.children.flatMap((c) => (c.children ? this.inside(c) : [c.node]));
    return g.all;
  }

  look() {
    const [x, y, w, hgt] = this.box;
    this.svg.setAttribute("viewBox", this.box.map((n) => n.toFixed(1)).join(" "));
    for (const [name, n] of Object.entries({ x, y, width: w, height: hgt })) this.frame.setAttribute(name, n.toFixed(1));
    this.map.hidden = w >= this.size.width * 0.98 && hgt >= this.size.height * 0.98;
  }

  fit() {
    if (!this.svg) return;
    const e = this.element.getBoundingClientRect(), wide = e.width / Math.max(1, e.height);
    let w = this.size.width, hgt = this.size.height;
    // a long graph begins at its top, in a size that can be read
    const top = 720;
    if (hgt > w / wide && hgt > top * 1.6) hgt = Math.max(top, w / wide);
    if (w / hgt < wide) w = hgt * wide;
    else hgt = w / wide;
    const scale = Math.max(1, e.width / 1.35 / w);
    w *= scale;
    hgt *= scale;
    this.box = [this.size.width / 2 - w / 2, this.size.height <= hgt ? this.size.height / 2 - hgt / 2 : 0, w, hgt];
    this.look();
  }

  // begin shows what fits in a size that can be read: all of a small graph, the beginning of a large one.
  begin() {
    this.fit();
    const e = this.element.getBoundingClientRect(), w = (e.width * 12) / least, hgt = (w * e.height) / Math.max(1, e.width);
    if (!e.width || this.box[2] <= w) return;
    const shown = [...this.boxes.values()].filter((b) => !b.open), first = shown.reduce((a, b) => (b.y < a.y ? b : a), shown[0]);
    const x = w >= this.size.width ? (this.size.width - w) / 2 : Math.min(Math.max(first.x - w / 2, 0), this.size.width - w);
    this.box = [x, hgt >= this.size.height ? (this.size.height - hgt) / 2 : 0, w, hgt];
    this.look();
  }

  center(b) {
    const [, , w, hgt] = this.box, k = Math.min(1, 1100 / w);
    this.box = [b.x - (w * k) / 2, b.y - (hgt * k) / 2, w * k, hgt * k];
    this.look();
  }

  zoom(by, at) {
    if (!this.svg) return;
    const [x, y, w, hgt] = this.box, p = at || { x: x + w / 2, y: y + hgt / 2 };
    this.box = [p.x - (p.x - x) / by, p.y - (p.y - y) / by, w / by, hgt / by];
    this.look();
  }

  drag() {
    const at = (e) => {
      const r = this.svg.getBoundingClientRect(), [x, y, w, hgt] = this.box, k = Math.max(w / r.width, hgt / r.height);
      return { x: x + w / 2 + (e.clientX - r.left - r.width / 2) * k, y: y + hgt / 2 + (e.clientY - r.top - r.height / 2) * k };
    };
    let from = null;
    this.svg.addEventListener("pointerdown", (e) => { from = at(e); this.moved = false; });
    this.svg.addEventListener("pointermove", (e) => {
      if (!from || !e.buttons) return;
      const p = at(e);
      if (!this.moved && Math.hypot(p.x - from.x, p.y - from.y) < this.box[2] / 200) return;
      this.moved = true;
      this.svg.classList.add("drag");
      this.box = [this.box[0] + from.x - p.x, this.box[1] + from.y - p.y, this.box[2], this.box[3]];
      this.look();
    });
    this.svg.addEventListener("pointerup", () => { from = null; this.svg.classList.remove("drag"); });
    this.svg.addEventListener("wheel", (e) => {
      e.preventDefault();
      this.zoom(Math.exp(-e.deltaY / 400), at(e));
    }, { passive: false });
  }

  // file is the picture as an SVG file.
  file() {
    const copy = this.svg.cloneNode(true), w = Math.ceil(this.size.width), hgt = Math.ceil(this.size.height);
    copy.setAttribute("viewBox", `0 0 ${w} ${hgt}`);
    copy.setAttribute("width", w);
    copy.setAttribute("height", hgt);
    copy.prepend(svg("rect", { width: w, height: hgt, fill: this.colours.bg }));
    return { text: new XMLSerializer().serializeToString(copy), width: w, height: hgt };
  }

  async save(kind) {
    if (!this.svg) return;
    const f = this.file(), name = this.app.doc.model.split(/[\\/]/).pop();
    const blob = new Blob([f.text], { type: "image/svg+xml" });
    if (kind === "svg") return download(name + ".svg", blob);
    const url = URL.createObjectURL(blob), image = new Image();
    await new Promise((done, failed) => { image.onload = done; image.onerror = failed; image.src = url; });
    const k = Math.min(2, 16000 / Math.max(f.width, f.height)), canvas = h("canvas", { width: f.width * k, height: f.height * k });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    URL.revokeObjectURL(url);
    canvas.toBlob((png) => download(name + ".png", png));
  }
}
