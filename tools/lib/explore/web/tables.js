import { h, svg, bytes, count, real, histogram } from "./dom.js";
import { highlight, Lines } from "./text.js";

// bars is a chart of names and numbers, the longest first.
function bars(title, rows, spell, pick) {
  const list = [...rows].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, 24), top = Math.max(1, ...list.map((r) => r[1]));
  return h("div", {}, h("h2", {}, title), h("div", { class: "chart" }, list.map(([name, n]) => [
    pick ? h("button", { class: "a name", title: name, onclick: () => pick(name) }, name) : h("span", { class: "name", title: name }, name),
    svg("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" }, svg("rect", { width: (100 * n) / top, height: 10 })), h("span", { class: "mono dim" }, spell(n))])));
}

export function costView(app) {
  const { doc } = app, g = doc.graph;
  if (!g) return h("div", { class: "busy" }, "The model is not converted.");
  const sum = (key, by) => {
    const m = new Map();
    for (const n of g.nodes) if (n[key] > 0) m.set(by(n), (m.get(by(n)) || 0) + n[key]);
    return m;
  };
  const total = (key) => g.nodes.reduce((s, n) => s + Math.max(0, n[key]), 0);
  const kind = (n) => n.kind, module = (n) => (n.module || "(no module)").split(".").slice(0, 2).join(".");
  const sizes = Object.entries(g.sizes);
  const nodes = g.nodes.map((n, i) => i).sort((a, b) => g.nodes[b].flops - g.nodes[a].flops).slice(0, 100);
  return h("div", { class: "scroll" },
    h("p", {}, h("b", {}, count(total("flops")) + " operations"), ", ", h("b", {}, bytes(total("bytes"))), " moved, ", h("b", {}, bytes(doc.weights.reduce((s, w) => s + w.bytes, 0))), " of weights",
      h("span", { class: "dim" }, sizes.length ? `; with ${sizes.map(([k, v]) => `${k} = ${v}`).join(", ")}` : "", g.opaque ? `; ${g.opaque} nodes whose cost is not known are left out` : "")),
    h("div", { class: "two" }, bars("Operations by operator", sum("flops", kind), count), bars("Operations by module", sum("flops", module), count),
      bars("Bytes by operator", sum("bytes", kind), bytes), bars("Bytes by module", sum("bytes", module), bytes)),
    h("h2", {}, "Nodes"),
    h("table", {}, h("thead", {}, h("tr", {}, ["Node", "Module", "Result"].map((t) => h("th", {}, t)), h("th", { class: "r" }, "Operations"), h("th", { class: "r" }, "Bytes"))),
      h("tbody", {}, nodes.map((i) => {
        const n = g.nodes[i];
        return h("tr", { class: "link" + (n.op === app.state.op ? " on" : ""), tabindex: 0, onclick: () => app.selectNode(i), onkeydown: (e) => e.key === "Enter" && app.selectNode(i) },
          h("td", {}, n.kind), h("td", { class: "dim" }, n.module || ""), h("td", { class: "mono" }, n.out.length ? g.values[n.out[0]].type : ""), h("td", { class: "r" }, count(n.flops)), h("td", { class: "r" }, bytes(n.bytes)));
      }))));
}

export function pipelineView(app) {
  const { doc } = app;
  const text = h("textarea", { class: "mono", spellcheck: "false", "aria-label": "pipeline", value: doc.pipeline || app.usual() });
  const said = h("span", { class: "bad" });
  const run = async () => {
    said.textContent = "";
    try { await app.pipeline(text.value); }
    catch (e) { said.textContent = e.message; }
  };
  const total = doc.passes.reduce((s, p) => s + p.ms, 0);
  return h("div", { class: "scroll" },
    app.source.live ? h("div", {}, h("h2", {}, "Run another pipeline"), text, h("div", { class: "bar" }, h("button", { onclick: run }, "Run"),
      h("button", { onclick: () => app.pipeline("").catch((e) => { said.textContent = e.message; }) }, "The usual one"), said)) : h("p", { class: "dim" }, "aton explore without --html runs other pipelines here."),
    h("p", {}, h("b", {}, `${doc.passes.length} passes`), ` in ${total.toFixed(1)} ms`),
    h("table", {}, h("thead", {}, h("tr", {}, h("th", {}, "Pass"), h("th", { class: "r" }, "ms"), h("th", {}, ""), h("th", { class: "r" }, "operators before"), h("th", { class: "r" }, "after"), h("th", {}, "What changed"))),
      h("tbody", {}, doc.passes.map((p, i) => h("tr", { class: "link", tabindex: 0, onclick: () => app.showPass(i), onkeydown: (e) => e.key === "Enter" && app.showPass(i) },
        h("td", { class: "mono" }, "  ".repeat(p.depth), p.text.length > 60 ? p.text.slice(0, 59) + "…" : p.text), h("td", { class: "r" }, p.ms.toFixed(2)),
        h("td", { class: "chart-cell" }, svg("svg", { viewBox: "0 0 100 10", width: 80, height: 9, preserveAspectRatio: "none" }, svg("rect", { width: (100 * p.ms) / Math.max(...doc.passes.map((q) => q.ms), 1e-9), height: 10, fill: "currentColor", opacity: 0.5 }))),
        h("td", { class: "r" }, p.before), h("td", { class: "r" + (p.after < p.before ? " good" : "") }, p.after),
        h("td", { class: "dim" }, p.changes.map((c) => `${c.what} ×${c.n}`).join(", ")))))));
}

export function weightsView(app) {
  const { doc } = app, picked = doc.weights[app.state.weight];
  const byType = new Map();
  for (const w of doc.weights) byType.set(w.dtype, (byType.get(w.dtype) || 0) + w.bytes);
  const list = new Lines({
    label: "weights", pick: (i) => app.set({ weight: i }),
    render: (i) => {
      const w = doc.weights[i];
      return h("div", { class: "row" + (i === app.state.weight ? " hit" : ""), role: "option" }, h("span", { class: "no" }, i), w.name.padEnd(46), " ", h("span", { class: "ty" }, (w.dtype + "[" + w.shape.join(",") + "]").padEnd(24)), " ", bytes(w.bytes));
    },
  });
  const section = h("div", { class: "columns" }, h("section", {}, h("div", { class: "bar" }, h("b", {}, `${doc.weights.length} weights`), h("span", { class: "dim" }, [...byType].map(([t, n]) => `${t} ${bytes(n)}`).join(", "))), list.element),
    h("section", { class: "scroll" }, picked ? weightCard(app, picked) : h("p", { class: "dim" }, "Choose a weight.")));
  section.style.gridTemplateColumns = "3fr 2fr";
  requestAnimationFrame(() => {
    list.set(doc.weights.length, 100);
    if (picked) list.show(app.state.weight);
  });
  return section;
}

export function weightCard(app, w) {
  const s = w.stats, all = w.shape.reduce((a, b) => a * b, 1);
  return h("div", {}, h("h2", { class: "mono" }, w.name),
    h("dl", {}, h("dt", {}, "Type"), h("dd", { class: "mono" }, `${w.dtype}[${w.shape.join(",")}]`), h("dt", {}, "Size"), h("dd", {}, bytes(w.bytes)),
      s ? [h("dt", {}, "Range"), h("dd", { class: "mono" }, `${real(s.min)} … ${real(s.max)}`), h("dt", {}, "Mean"), h("dd", { class: "mono" }, real(s.mean)),
        s.nan || s.inf ? [h("dt", {}, "Not finite"), h("dd", { class: "bad" }, `${s.nan} NaN, ${s.inf} infinities`)] : null,
        s.count < all ? [h("dt", {}, "Sample"), h("dd", {}, `${s.count} of ${all} elements`)] : null] : null), histogram(s));
}

export function kernelsView(app) {
  const k = app.kernels;
  if (!k) {
    app.loadKernels();
    return h("div", { class: "busy" }, "Generating the kernels…");
  }
  if (k.failed) return h("div", { class: "busy" }, k.failed);
  const { doc, state } = app, i = Math.min(state.kernel, k.kernels.length - 1), picked = k.kernels[i];
  const of = state.op !== null ? app.launchesOf(state.op) : [];
  const code = new Lines({ label: "kernel", pick: () => {}, render: (j) => h("div", { class: "row none", role: "option" }, h("span", { class: "no" }, j + 1), highlight(lines[j])) });
  const lines = state.code === "plan" ? k.plan.split("\n") : picked ? picked[state.code].split("\n") : [];
  const section = h("div", { class: "columns" },
    h("section", {}, h("div", { class: "bar" }, h("b", {}, `${k.launch.filter((l) => l.kernel >= 0).length} launches of ${k.kernels.length} kernels`)),
      h("div", { class: "scroll" }, h("table", {}, h("tbody", {}, k.launch.map((l, n) => h("tr", { class: "link" + (of.includes(n) ? " on" : ""), tabindex: 0,
        onclick: () => app.set({ kernel: Math.max(0, l.kernel) }), onkeydown: (e) => e.key === "Enter" && app.set({ kernel: Math.max(0, l.kernel) }) },
        h("td", { class: "r dim" }, n), h("td", { class: "mono" }, l.kernel >= 0 ? k.kernels[l.kernel].name : h("span", { class: "dim" }, "host: " + l.host)), h("td", { class: "dim mono" }, l.nodes.filter((n) => n).join(", ")),
        h("td", { class: "r mono dim", title: l.grid ? l.grid.join(" × ") : null }, l.grid ? l.grid.map((x) => (x.length > 9 ? x.slice(0, 8) + "…" : x)).join(" × ") : ""))))))),
    h("section", {}, h("div", { class: "bar" }, h("b", { class: "mono" }, picked ? picked.name : ""), ["kir", "llvm", "ptx", "plan"].map((c) => h("button", { "aria-pressed": state.code === c ? "true" : "false", onclick: () => app.set({ code: c }) },
      { kir: "Kernel IR", llvm: "LLVM IR", ptx: "PTX", plan: "Launch plan" }[c])), picked ? h("span", { class: "dim" }, `${picked.class}, ${picked.threads} threads, ${bytes(picked.shared)} shared`) : null), code.element));
  section.style.gridTemplateColumns = "2fr 3fr";
  requestAnimationFrame(() => code.set(lines.length, lines.reduce((m, l) => Math.max(m, l.length), 0)));
  return section;
}

export function numbersView(app) {
  const n = app.numbers, { doc } = app;
  if (!doc.graph) return h("div", { class: "busy" }, "The model is not converted.");
  if (!n) return h("div", { class: "busy" }, app.source.canRun ? h("div", {}, h("button", { onclick: () => app.loadNumbers() }, "Run in the reference interpreter"), h("p", { class: "dim" }, "on the recorded data of --data, or on random inputs")) : "This file was written without numbers: give --random or --data with --html.");
  if (n.failed) return h("div", { class: "busy bad" }, n.failed);
  const rows = [];
  doc.graph.nodes.forEach((node, i) => node.out.forEach((v) => {
    const run = n.values[doc.graph.values[v].text];
    if (run) rows.push([i, v, run]);
  }));
  const list = new Lines({
    label: "values", pick: (j) => app.selectNode(rows[j][0]),
    render: (j) => {
      const [i, v, run] = rows[j], s = run.stats, value = doc.graph.values[v], bad = value.text === n.wrong, nan = s && s.nan > 0;
      return h("div", { class: "row" + (doc.graph.nodes[i].op === app.state.op ? " hit" : bad ? " del" : ""), role: "option" },
        h("span", { class: "no" }, i), h("span", { class: bad ? "bad" : nan ? "warn" : "" }, doc.graph.nodes[i].kind.padEnd(22)), " ", h("span", { class: "ty" }, run.type.padEnd(24)), " ",
        s ? `${real(s.min).padStart(11)} … ${real(s.max).padEnd(11)} ` : "".padEnd(27), nan ? h("span", { class: "warn" }, `${s.nan} NaN  `) : "", s && s.first ? h("span", { class: "c" }, s.first.map((x) => (x.length > 9 ? (+x).toPrecision(4) : x)).join("  ")) : "", run.times > 1 ? `  ×${run.times}` : "");
    },
  });
  requestAnimationFrame(() => list.set(rows.length, 150));
  return h("section", { class: "columns" }, (() => {
    const s = h("section", {}, h("div", { class: "bar" }, h("b", {}, "Data set " + n.data), h("span", { class: "dim" }, `${rows.length} values`), app.source.live ? h("button", { onclick: () => app.loadNumbers() }, "Run again") : null,
      n.outputs.map((o) => h("span", { class: o.wrong ? "bad" : "good" }, o.wrong ? `${o.name}: ${o.wrong}` : `${o.name}: as recorded (worst ${o.worst < 0 ? "not finite" : o.worst.toPrecision(2)})`)),
      n.suspect ? h("span", { class: "bad" }, n.suspect) : null, n.nan ? h("button", { class: "a warn", onclick: () => app.select({ op: null, place: null, value: n.nan }) }, "the first NaN: " + n.nan) : null), list.element);
    s.style.gridColumn = "1 / -1";
    return s;
  })());
}

// markdown shows a page of explanations: headings, paragraphs, lists, code. Other marks stay as they are.
function markdown(text) {
  const out = [];
  const inline = (s) => s.split(/(`[^`]+`)/).map((p) => (p.startsWith("`") && p.length > 2 ? h("code", {}, p.slice(1, -1)) : p.replace(/\[([^\]]+)\]\([^)]*\)/g, "$1").replace(/\*\*([^*]+)\*\*/g, "$1")));
  for (const [i, part] of text.split("```").entries()) {
    if (i % 2) {
      out.push(h("pre", { class: "block" }, part.replace(/^\w*\n/, "")));
      continue;
    }
    for (const p of part.split(/\n\s*\n/)) {
      const m = p.trim().match(/^(#+) (.*)/s);
      if (m) out.push(h("h2", {}, inline(m[2])));
      else if (/^[-*] /.test(p.trim())) out.push(h("ul", {}, p.trim().split(/\n(?=[-*] )/).map((l) => h("li", {}, inline(l.slice(2).replace(/\n\s*/g, " "))))));
      else if (p.trim()) out.push(h("p", {}, inline(p.trim().replace(/\n/g, " "))));
    }
  }
  return h("div", { class: "page" }, out);
}

export function problemsView(app) {
  const { doc } = app;
  if (doc.problems.length === 0 && !doc.failed) return h("div", { class: "busy" }, "The model converts, and there is nothing to say about it.");
  const order = { error: 0, warning: 1, note: 2 }, list = [...doc.problems].sort((a, b) => order[a.severity] - order[b.severity]);
  const told = new Set();
  return h("div", { class: "scroll" },
    doc.failed ? h("p", {}, h("b", { class: "bad" }, "The model cannot be converted. "), h("span", { class: "dim" }, "What the passes did up to there is in the other tabs.")) : null,
    list.length === 0 ? h("div", { class: "card error" }, doc.failed) : null,
    list.map((p) => {
      const f = doc.frames[p.frame], place = f.file ? f.file + ":" + f.line : "", at = place && app.index.lineOf.get(place);
      const first = !told.has(p.id);
      told.add(p.id);
      return h("div", { class: "card " + p.severity },
        h("div", {}, h("b", {}, p.op || p.id), f.scope ? h("span", { class: "dim" }, " in " + f.scope) : null, " ", h("span", { class: "dim mono" }, p.id)),
        h("p", {}, p.message, p.hint ? h("span", {}, "; ", p.hint) : null),
        place ? h("button", { class: "a mono", onclick: () => { app.set({ view: "code" }); app.select({ op: null, place, value: null }); } }, place) : null,
        at ? h("pre", { class: "block" }, highlight(doc.sources[at[0]].lines[at[1]].t.trim())) : null,
        doc.pages[p.id] ? h("details", first && p.severity === "error" ? { open: true } : {}, h("summary", {}, "What it means, and what to do"), markdown(doc.pages[p.id])) : null);
    }));
}
