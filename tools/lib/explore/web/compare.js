import { h } from "./dom.js";

// union is the graph of a model with what another one has besides: nodes have a change, and those that are gone are in their places.
export function union(graph, c) {
  const old = c.graph, g = { ...graph, compared: true, values: [...graph.values], nodes: [] };
  const newOf = new Map(c.pairs.map((p) => [p.old, p.new])), pairOf = new Map(c.pairs.map((p) => [p.new, p]));
  const value = new Map(); // of the old model: in the new one
  old.inputs.forEach((v) => {
    const same = graph.inputs.find((w) => graph.values[w].name === old.values[v].name);
    if (same !== undefined) value.set(v, same);
  });
  c.pairs.forEach((p) => old.nodes[p.old].out.forEach((v, k) => value.set(v, graph.nodes[p.new].out[k])));
  const take = (v) => {
    if (v < 0) return v;
    if (!value.has(v)) value.set(v, g.values.push({ ...old.values[v], removed: true, weight: old.values[v].weight >= 0 ? 0 : -1 }) - 1);
    return value.get(v);
  };
  // an old node stands before the new node that its next partner is
  const before = new Map();
  let gone = [];
  old.nodes.forEach((n, o) => {
    if (newOf.has(o)) { before.set(newOf.get(o), [...(before.get(newOf.get(o)) || []), ...gone]); gone = []; }
    else gone.push(o);
  });
  const at = new Map(), oldAt = new Map(); // positions in the union
  const add = (o) => {
    const n = old.nodes[o];
    oldAt.set(o, g.nodes.length);
    g.nodes.push({ ...n, op: -1 - o, change: "removed", in: n.in.map(take), out: n.out.map(take), parent: n.parent < 0 ? -1 : at.get(newOf.get(n.parent)) ?? oldAt.get(n.parent) ?? -1, bodies: undefined });
  };
  graph.nodes.forEach((n, i) => {
    (before.get(i) || []).forEach(add);
    at.set(i, g.nodes.length);
    g.nodes.push({ ...n, change: !pairOf.has(i) ? "added" : pairOf.get(i).changes.length ? "changed" : "same", what: pairOf.get(i)?.changes, parent: n.parent < 0 ? -1 : at.get(n.parent) });
  });
  gone.forEach(add);
  return g;
}

// compareView lists what a model has changed: inputs and outputs, nodes, weights and, where both were run, numbers.
export function compareView(app) {
  const { doc } = app, c = doc.comparison, g = doc.graph, paired = new Set(c.pairs.map((p) => p.new)), kept = new Set(c.pairs.map((p) => p.old));
  const added = g.nodes.map((_, i) => i).filter((i) => !paired.has(i)), removed = c.graph.nodes.filter((_, i) => !kept.has(i)), changed = c.pairs.filter((p) => p.changes.length);
  const where = (n) => n.module || n.name, numbers = app.numbers;
  const row = (i, sign, cls, detail) => h("tr", { class: "link", tabindex: 0, onclick: () => app.selectNode(i), onkeydown: (e) => e.key === "Enter" && app.selectNode(i) },
    h("td", { class: "mono " + cls }, sign), h("td", {}, g.nodes[i].kind), h("td", { class: "dim" }, where(g.nodes[i])), h("td", { class: "mono" }, detail));
  const far = numbers && numbers.differs ? g.nodes.flatMap((n, i) => n.out.map((v) => [i, g.values[v], numbers.differs[g.values[v].text]])).filter(([, , d]) => d !== undefined && d !== 0) : [];
  far.sort((a, b) => (a[2] < 0 ? -1 : b[2] < 0 ? 1 : b[2] - a[2]));
  const table = (title, rows, empty) => [h("h2", {}, title), rows.length ? h("table", {}, h("tbody", {}, rows)) : h("p", { class: "dim" }, empty)];
  return h("div", { class: "scroll", tabindex: 0, "aria-label": "compared" },
    h("p", {}, h("b", {}, doc.model.split(/[\\/]/).pop()), " beside ", h("b", {}, c.model.split(/[\\/]/).pop()), `: ${added.length} nodes added, ${removed.length} removed, ${changed.length} changed, ${c.pairs.length - changed.length} the same`),
    c.signature.length ? table("Inputs and outputs", c.signature.map((s) => h("tr", {}, h("td", { class: "mono " + (s[0] === "+" ? "good" : "bad") }, s)))) : null,
    table("Nodes", [...added.map((i) => row(i, "+", "good", g.nodes[i].out.map((v) => g.values[v].type).join(", "))), ...removed.map((n) => h("tr", {}, h("td", { class: "mono bad" }, "−"), h("td", {}, n.kind), h("td", { class: "dim" }, where(n)), h("td", { class: "mono" }, n.out.map((v) => c.graph.values[v].type).join(", ")))),
      ...changed.map((p) => row(p.new, "~", "warn", p.changes.join("; ")))].slice(0, 500), "All nodes are the same."),
    table("Weights", c.weights.slice(0, 500).map((w) => h("tr", {}, h("td", { class: "mono " + { added: "good", removed: "bad", changed: "warn" }[w.what] }, { added: "+", removed: "−", changed: "~" }[w.what]), h("td", { class: "mono" }, w.name), h("td", { class: "mono ty" }, w.new || w.old, w.what === "changed" && w.new !== w.old ? `, was ${w.old}` : ""), h("td", {}, w.what !== "changed" ? "" : w.differs < 0 ? "other elements" : `differs by ${w.differs.toExponential(2)} of its greatest element`))), "All weights are the same."),
    numbers && numbers.former ? h("p", { class: "warn" }, numbers.former) : null,
    numbers && numbers.differs ? table("Numbers, on the same inputs", far.slice(0, 200).map(([i, v, d]) => row(i, d < 0 ? "not finite" : d.toExponential(2), d < 0 || d > 1e-3 ? "bad" : "dim", v.type)), "All values that both have are equal.")
      : [h("h2", {}, "Numbers"), app.source.canRun ? h("button", { onclick: () => app.loadNumbers() }, "Run both on the same inputs") : h("p", { class: "dim" }, "This file was written without numbers: --random or --data beside --html has them.")]);
}
