import { h, svg, download, count } from "./dom.js";
import { tree, opened, closed, shape, place } from "./layout.js";

const most = 500; // boxes that are drawn
const begun = 16; // boxes up to which modules are open at first
const least = 11; // pixels of the text that the picture begins with
const labelled = 160; // arrows, up to which each has its type beside it

const families = {
  matrix: /^(Conv|ConvTranspose|ConvInteger|QLinearConv|MatMul|MatMulInteger|QLinearMatMul|Gemm|Einsum|LSTM|GRU|RNN|Attention)$/,
  act: /^(Relu|LeakyRelu|Sigmoid|Tanh|Gelu|Elu|Selu|Softmax|LogSoftmax|HardSwish|HardSigmoid|Clip|Erf|PRelu|Softplus|Mish|Swish)$/,
  norm: /^(BatchNormalization|LayerNormalization|InstanceNormalization|GroupNormalization|RMSNormalization|LpNormalization|LRN|Reduce.*|GlobalAveragePool|GlobalMaxPool|MaxPool|AveragePool)$/,
  move: /^(Reshape|Flatten|Squeeze|Unsqueeze|Transpose|Concat|Split|Slice|Gather.*|Scatter.*|Expand|Tile|Pad|Shape|Size|Cast|CastLike|Identity|Resize|ConstantOfShape|Range|QuantizeLinear|DequantizeLinear|DynamicQuantizeLinear)$/,
  flow: /^(If|Loop|Scan|Sequence.*|Optional.*)$/,
};

function family(kind) {
  for (const [name, re] of Object.entries(families)) if (re.test(kind)) return name;
  return "elem";
}

// The picture's own style, so that it looks the same when it is saved. Colours are those of the page.
const colours = ["bg", "panel", "line", "text", "dim", "accent", "hit", "soft", "bad", "warn", "node", "group", "matrix", "act", "norm", "move", "flow", "elem"];

// Picture shows the converted graph.
export class Picture {
  constructor(app) {
    this.app = app;
    const g = app.doc.graph;
    this.element = h("div", { class: "graph" });
    this.bar = h("div", { class: "bar" },
      h("button", { onclick: () => this.fit(), title: "f" }, "Fit"), h("button", { onclick: () => this.zoom(1.25), title: "+" }, "+"), h("button", { onclick: () => this.zoom(0.8), title: "-" }, "−"),
      h("button", { onclick: () => this.openAll() }, "Open all"), h("button", { onclick: () => this.setOpen(new Set([""]), null) }, "Close all"),
      this.sizing = h("button", { "aria-pressed": "false", title: "operators that depend on sizes alone: shapes, positions, masks", onclick: () => { this.sizes = !this.sizes; this.draw(true); } }, "Sizes & masks"), h("button", { onclick: () => this.save("svg") }, "SVG"), h("button", { onclick: () => this.save("png") }, "PNG"), this.note = h("span", { class: "dim" }));
    if (!g) {
      this.element.append(h("p", { class: "busy" }, "The model is not converted: there is no ONNX graph. The tab Problems says why."));
      return;
    }
    this.tree = tree(g);
    this.sizes = false;
    this.follow();
  }

  // follow opens the groups that the address names.
  follow() {
    if (!this.tree) return;
    const wanted = this.app.state.open;
    this.open = wanted === null ? closed(this.tree, begun) : new Set(["", ...wanted.split(",").filter((x) => x)]);
    this.svg = null;
    this.box = null;
  }

  // setOpen opens these groups. The box named stays where it is in sight; null shows the whole picture.
  setOpen(open, keep) {
    const before = keep && this.boxes && this.boxes.get(keep);
    this.open = open;
    this.app.set({ open: [...open].filter((x) => x).join(",") }, true);
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
    const { doc } = this.app, g = doc.graph;
    if (b.group) {
      const title = b.group.title || "model";
      return [title, b.group.equal ? `${b.group.equal} modules of ${b.group.nodes / b.group.equal} nodes` : b.group.part ? `${b.group.nodes} nodes` : b.node !== undefined ? `${b.group.nodes} nodes in its bodies` : `${b.group.nodes} node${b.group.nodes === 1 ? "" : "s"}`];
    }
    if (b.value !== undefined) return [b.title, g.values[b.value].type];
    const n = g.nodes[b.node];
    const weights = n.in.filter((v) => v >= 0 && g.values[v].weight >= 0).map((v) => doc.weights[g.values[v].weight]);
    const leaf = this.tree.leaves[b.node];
    const detail = weights.length ? weights.map((w) => w.shape.join("×")).slice(0, 2).join(" + ") : n.attrs && n.attrs.length ? n.attrs.slice(0, 2).map((a) => `${a.name}=${a.text}`).join(" ") : "";
    return [n.kind + (leaf.module ? "  " + leaf.module : ""), detail.length > 34 ? detail.slice(0, 33) + "…" : detail];
  }

  // draw lays out and draws what is open; only is true after a change of that.
  draw(again) {
    if (!this.tree) return;
    if (!this.svg || again) this.build();
    this.mark();
  }

  build() {
    const { doc } = this.app, g = doc.graph;
    let s = shape(g, this.tree, this.open, this.sizes);
    this.sizing.setAttribute("aria-pressed", this.sizes ? "true" : "false");
    if (s.boxes.size > most) {
      this.open = opened(this.tree, most / 2);
      s = shape(g, this.tree, this.open, this.sizes);
      this.note.textContent = `more than ${most} boxes: some stay closed`;
    } else {
      const away = this.sizes ? 0 : this.tree.leaves.filter((l) => l.sizes).length;
      this.note.textContent = `${s.boxes.size} boxes for ${g.nodes.length} nodes${away ? `, ${away} of sizes and masks left out` : ""}; click a module to open or close it`;
    }
    const labels = s.arrows.length <= labelled;
    for (const a of s.arrows) a.label = a.values.length === 1 ? g.values[a.values[0]].type : `${a.values.length} tensors`;
    for (const b of s.boxes.values()) b.label = this.label(b);
    const began = performance.now();
    this.size = place(s, (b) => ({ width: Math.max(76, 22 + 7.1 * b.label[0].length, 22 + 5.9 * b.label[1].length), height: b.label[1] ? 40 : 28 }), labels);
    this.app.measure("layout", performance.now() - began);
    this.boxes = s.boxes;
    const layer = [], front = [], texts = [];
    for (const b of s.boxes.values()) {
      const x = b.x - b.width / 2, y = b.y - b.height / 2;
      const cls = b.group ? (b.open ? "open" : "group") : b.value !== undefined ? "io" : family(g.nodes[b.node].kind);
      const pick = () => {
        if (b.group) this.toggle(b.group.id);
        else if (b.node !== undefined) this.app.select({ op: g.nodes[b.node].op, place: this.app.index.placeOf(g.nodes[b.node].op), value: null });
        else this.app.select({ op: null, place: null, value: g.values[b.value].text });
      };
      const e = svg("g", { class: "box " + cls, tabindex: 0, role: "button", "aria-label": b.label.join(" "), "data-id": b.id,
        onclick: (ev) => { if (!this.moved) { ev.stopPropagation(); pick(); } },
        onkeydown: (ev) => { if (ev.key === "Enter" || ev.key === " ") { ev.preventDefault(); pick(); } } },
        svg("title", {}, b.group ? `${b.group.id}\n${b.label[1]}` : b.node !== undefined ? `${g.nodes[b.node].name}\n${b.label.join("\n")}` : b.label.join("\n")),
        svg("rect", { x, y, width: b.width, height: b.height, rx: b.value !== undefined ? 14 : 6 }));
      if (!b.open && !b.group && b.value === undefined) e.append(svg("rect", { class: "stripe", x, y: y + 3, width: 4, height: b.height - 6, rx: 2 }));
      if (b.open) texts.push(svg("text", { class: "t left", x: x + 8, y: y + 14 }, "− " + (b.group.title || "")));
      else {
        e.append(svg("text", { class: "t", x: b.x, y: b.label[1] ? b.y - 2 : b.y + 4 }, (b.group ? "+ " : "") + b.label[0]));
        if (b.label[1]) e.append(svg("text", { class: "d", x: b.x, y: b.y + 12 }, b.label[1]));
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
      if (p.length === 2) d += `L${p[1].x.toFixed(1)} ${p[1].y.toFixed(1)}`;
      arrows.push(svg("path", { class: "arrow", d, "marker-end": "url(#tip)" }, svg("title", {}, a.values.map((v) => `${g.values[v].name}: ${g.values[v].type}`).join("\n"))));
      if (labels) texts.push(svg("text", { class: "e", x: a.at.x - a.label.length * 2.7, y: a.at.y + 3 }, a.label));
    }
    this.style = svg("style", {});
    this.svg = svg("svg", { xmlns: "http://www.w3.org/2000/svg", role: "group", "aria-label": "the ONNX graph" },
      svg("defs", {}, svg("marker", { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 6, markerHeight: 6, orient: "auto" }, svg("path", { class: "tip", d: "M0 0L8 4L0 8z" }))),
      layer.length ? layer : null, arrows, texts, front);
    this.element.replaceChildren(this.svg);
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
    each("text", { "font-family": "system-ui, 'Liberation Sans', sans-serif", "text-anchor": "middle", fill: c.dim });
    each(".t", { "font-size": 12, "font-weight": 600, fill: c.text });
    each(".t.left", { "text-anchor": "start" });
    each(".d, .e", { "font-size": 10 });
    each(".e", { "text-anchor": "start" });
    each(".arrow", { fill: "none", stroke: c.move, "stroke-width": 1.2 });
    each(".tip", { fill: c.move });
    each(".box > rect", { fill: c.node, stroke: c.line, "stroke-width": 1 });
    each(".group > rect", { fill: c.group, stroke: c.accent, "stroke-width": 1 });
    each(".open > rect", { fill: c.group, "fill-opacity": 0.55, stroke: c.line, "stroke-dasharray": "4 3" });
    each(".io > rect", { fill: c.panel, stroke: c.dim });
    for (const f of [...Object.keys(families), "elem"]) each(`.${f} > .stripe`, { fill: c[f], stroke: "none" });
    this.colours = c;
  }

  // mark shows what is selected, and what a run has found.
  mark() {
    const { app } = this, { doc, related, state, numbers } = app, c = this.colours;
    if (!c) return;
    for (const b of this.boxes.values()) {
      if (b.open) continue;
      const nodes = b.group ? this.inside(b.group) : b.node !== undefined ? [b.node] : [];
      const ops = nodes.map((n) => doc.graph.nodes[n].op);
      const strong = ops.some((o) => o === state.op || related.strong.has(o)) || (b.value !== undefined && doc.graph.values[b.value].text === state.value);
      const weak = !strong && ops.some((o) => related.weak.has(o));
      const outs = nodes.flatMap((n) => doc.graph.nodes[n].out).map((v) => doc.graph.values[v].text);
      const wrong = numbers && outs.includes(numbers.wrong), nan = numbers && outs.includes(numbers.nan);
      const rect = b.element.querySelector("rect");
      rect.setAttribute("fill", strong ? c.hit : weak ? c.soft : b.group ? c.group : b.value !== undefined ? c.panel : c.node);
      rect.setAttribute("stroke", wrong ? c.bad : nan ? c.warn : strong ? c.accent : b.group ? c.accent : b.value !== undefined ? c.dim : c.line);
      rect.setAttribute("stroke-width", wrong || nan ? 3 : strong ? 2 : 1);
    }
  }

  inside(g) {
    if (!g.all) g.all = g.children.flatMap((c) => (c.children ? this.inside(c) : [c.node]));
    return g.all;
  }

  look() { this.svg.setAttribute("viewBox", this.box.map((x) => x.toFixed(1)).join(" ")); }

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
