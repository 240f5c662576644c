import { h, bytes, count, real, element, histogram } from "./dom.js";
import { highlight } from "./text.js";
import { dynamic, example } from "./sizes.js";
import { weightCard } from "./tables.js";

// inspect tells all that is known of the selection.
export function inspect(app) {
  const { doc, state, index } = app, out = [];
  let value = state.value !== null ? index.valueOf.get(state.value) : undefined;
  let op = state.op;
  if (op === null && value !== undefined && index.makerOf.has(value)) op = doc.graph.nodes[index.makerOf.get(value)].op;
  if (op === null && value === undefined && !state.place) return [h("h2", {}, "Nothing selected"), h("p", { class: "dim" }, "Click a line of source, an operator of a stage, or a node of the graph: what belongs to it is marked everywhere, and this pane tells its history."), summary(app)];
  if (op !== null) out.push(...opCard(app, op));
  else if (value !== undefined) out.push(h("h2", { class: "mono" }, doc.graph.values[value].name), h("dl", {}, h("dt", {}, "Type"), h("dd", { class: "mono" }, doc.graph.values[value].type)));
  if (value !== undefined && doc.graph.values[value].weight >= 0) out.push(h("h3", {}, "Weight"), weightCard(app, doc.weights[doc.graph.values[value].weight]));
  if (value !== undefined) out.push(...numberCard(app, doc.graph.values[value].text));
  if (state.place && op === null) out.push(...placeCard(app, state.place));
  return out;
}

function summary(app) {
  const { doc } = app, g = doc.graph;
  const sizes = dynamic(doc);
  return h("div", {}, h("h3", {}, "Model"), h("dl", {}, h("dt", {}, "Opset"), h("dd", {}, doc.opset), g ? [h("dt", {}, "Nodes"), h("dd", {}, g.nodes.length), h("dt", {}, "Weights"), h("dd", {}, `${doc.weights.length}, ${bytes(doc.weights.reduce((s, w) => s + w.bytes, 0))}`),
    g.inputs.map((v) => [h("dt", {}, "Input"), h("dd", { class: "mono" }, `${g.values[v].name} ${g.values[v].type}`)]), g.outputs.map((v, i) => [h("dt", {}, "Output"), h("dd", { class: "mono" }, `${g.outputNames[i] || g.values[v].name} ${g.values[v].type}`)])] : null),
    sizes.length ? [h("h3", {}, "Dynamic sizes"), h("dl", {}, sizes.map(([name, axes, symbol]) => [h("dt", { class: "mono" }, name), h("dd", {}, axes.join(", ") + (symbol ? "; " : ""), symbol ? [h("code", {}, symbol), " in the archive"] : null)])),
      sizes.some(([, , symbol]) => symbol) ? h("p", { class: "dim" }, "The archive has no names for them. An input that is given with names has these everywhere: ", h("code", {}, example(doc, g.inputs[0]))) : null] : null);
}

function sourceLine(app, place) {
  const { doc, index } = app, at = index.lineOf.get(place);
  return h("div", {}, h("button", { class: "a mono", onclick: () => { app.set({ view: "code" }); app.select({ op: null, place, value: null }); } }, place.split("/").slice(-2).join("/")),
    at ? h("pre", { class: "block", tabindex: 0 }, highlight(doc.sources[at[0]].lines[at[1]].t.trim())) : null);
}

function opCard(app, op) {
  const { doc, index } = app, o = doc.ops[op], f = doc.frames[o.frame], n = index.nodeOf.get(op), out = [];
  out.push(h("h2", { class: "mono" }, o.kind));
  const rows = [];
  const row = (k, v, cls) => v !== "" && v !== undefined && rows.push(h("dt", {}, k), h("dd", { class: cls || "" }, v));
  if (f.scope) row("Module", f.scope, "mono");
  if (n !== undefined && doc.graph.nodes[n].also) row("And", doc.graph.nodes[n].also.join(", "), "mono");
  if (n !== undefined) {
    const node = doc.graph.nodes[n];
    row("Node", node.name, "mono");
    node.in.forEach((v, i) => v >= 0 && rows.push(h("dt", {}, (doc.graph.operands[node.kind] || [])[i] || "In " + i), h("dd", { class: "mono" }, valueLink(app, v))));
    node.out.forEach((v, i) => rows.push(h("dt", {}, "Out " + i), h("dd", { class: "mono" }, valueLink(app, v))));
    for (const a of node.attrs || []) row(a.name, a.text, "mono");
    const pair = doc.comparison && doc.comparison.pairs.find((p) => p.new === n);
    if (doc.comparison) row("Change", !pair ? "new" : pair.changes.length ? pair.changes.join("; ") : "none", pair && !pair.changes.length ? "" : "warn");
    if (app.numbers && app.numbers.differs) node.out.forEach((v) => { const d = app.numbers.differs[doc.graph.values[v].text]; if (d !== undefined) row("Differs by", d < 0 ? "not finite" : d.toExponential(2), "mono"); });
    row("Cost", `${count(node.flops)} operations, ${bytes(node.bytes)}`);
  }
  out.push(h("dl", {}, rows));
  if (n !== undefined) for (const v of doc.graph.nodes[n].out) out.push(...numberCard(app, doc.graph.values[v].text));
  const places = index.places[o.frame];
  if (places.length) out.push(h("h3", {}, "Source"), places.slice(0, 6).map((p) => sourceLine(app, p)));
  out.push(h("h3", {}, "History"), h("ul", { class: "steps" }, story(app, op)));
  const stages = doc.stages.map((s, i) => {
    const here = s.ops.map((x, j) => [x, j]).filter(([x]) => app.related.strong.has(x));
    return here.length ? h("li", {}, h("button", { class: "a", onclick: () => { app.set({ view: "code", right: i }); app.reveal(); } }, `${i} · ${s.name}`), " ", h("span", { class: "dim mono" }, [...new Set(here.map(([x]) => doc.ops[x].kind))].slice(0, 3).join(", "))) : null;
  });
  out.push(h("h3", {}, "At every stage"), h("ul", { class: "steps" }, stages));
  if (app.kernels && n !== undefined) {
    const l = app.launchesOf(op);
    if (l.length) out.push(h("h3", {}, "Kernels"), h("ul", { class: "steps" }, l.map((i) => {
      const launch = app.kernels.launch[i];
      return h("li", {}, launch.kernel >= 0 ? h("button", { class: "a mono", onclick: () => app.set({ view: "kernels", kernel: launch.kernel }) }, app.kernels.kernels[launch.kernel].name) : "host: " + launch.host);
    })));
  } else if (n !== undefined) out.push(h("h3", {}, "Kernels"), h("button", { class: "a", onclick: () => app.loadKernels() }, "show the kernels of this node"));
  return out;
}

function valueLink(app, v) {
  const x = app.doc.graph.values[v];
  return h("span", {}, h("button", { class: "a mono", onclick: () => app.select({ op: null, place: null, value: x.text }) }, x.name), " ", h("span", { class: "ty" }, x.type), x.note ? h("span", { class: "dim" }, " = " + x.note) : null);
}

// story tells who made an operator, and of what.
function story(app, op) {
  const { doc } = app, out = [], seen = new Set();
  const tell = (i, depth) => {
    if (seen.has(i) || depth > 12) return;
    seen.add(i);
    const o = doc.ops[i];
    for (const f of o.from || []) tell(f, depth + 1);
    const pass = (p) => h("button", { class: "a", onclick: () => app.showPass(p) }, doc.passes[p].name);
    out.push(h("li", {}, h("b", { class: "mono" }, o.kind), " ", o.made < 0 ? h("span", { class: "dim" }, "of the program") : [h("span", { class: "dim" }, "made by "), pass(o.made)],
      (o.steps || []).slice(0, 8).map((s) => h("div", { class: "dim" }, "  rule ", h("b", {}, s.rule), " in ", pass(s.pass))),
      o.gone >= 0 ? h("div", { class: "dim" }, "  removed by ", pass(o.gone)) : null));
  };
  tell(op, 0);
  return out;
}

function numberCard(app, text) {
  const run = app.numbers && app.numbers.values && app.numbers.values[text];
  if (!run) return [];
  const s = run.stats;
  return [h("h3", {}, "Numbers, data set " + app.numbers.data), h("dl", {}, h("dt", {}, "Type"), h("dd", { class: "mono" }, run.type),
    s ? [h("dt", {}, "Range"), h("dd", { class: "mono" }, `${element(s.min, run.type)} … ${element(s.max, run.type)}`), h("dt", {}, "Mean"), h("dd", { class: "mono" }, real(s.mean)), s.nan || s.inf ? [h("dt", {}, "Not finite"), h("dd", { class: "warn" }, `${s.nan} NaN, ${s.inf} infinities`)] : null,
      s.first ? [h("dt", {}, "First"), h("dd", { class: "mono" }, s.first.join(", "))] : null] : null,
    app.numbers.wrong === text ? [h("dt", {}, "Wrong"), h("dd", { class: "bad" }, app.numbers.suspect)] : null), histogram(s)];
}

function placeCard(app, place) {
  const { doc, index } = app, nodes = [], kinds = new Map();
  for (const o of app.related.weak) {
    if (index.nodeOf.has(o)) nodes.push(index.nodeOf.get(o));
    kinds.set(doc.ops[o].kind, (kinds.get(doc.ops[o].kind) || 0) + 1);
  }
  return [h("h2", {}, "Line"), sourceLine(app, place), h("h3", {}, `${nodes.length} ONNX nodes`), h("ul", { class: "steps" }, nodes.slice(0, 60).map((i) => h("li", {}, h("button", { class: "a mono", onclick: () => app.selectNode(i) }, doc.graph.nodes[i].kind), " ", h("span", { class: "dim" }, doc.graph.nodes[i].module || doc.graph.nodes[i].name)))),
    h("h3", {}, "Operators of all stages"), h("ul", { class: "steps" }, [...kinds].sort((a, b) => b[1] - a[1]).slice(0, 30).map(([k, n]) => h("li", { class: "mono" }, `${k} `, h("span", { class: "dim" }, `×${n}`))))];
}
