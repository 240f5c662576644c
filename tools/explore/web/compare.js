// union is the graph of a model with what another one has besides: nodes have a change, and those that are gone are in their places.
export function union(graph, c) {
  const old = c.graph, g = { ...graph, compared: true, values: [...graph.values], nodes: [] };
  const newOf = new Map(c.pairs.map(([n, o]) => [o, n])), pairOf = new Map(c.pairs.map(([n, o, what]) => [n, what]));
  const value = new Map(); // of the old model: in the new one
  old.inputs.forEach((v) => {
    const same = graph.inputs.find((w) => graph.values[w].name === old.values[v].name);
    if (same !== undefined) value.set(v, same);
  });
  c.pairs.forEach(([n, o]) => old.nodes[o].out.forEach((v, k) => value.set(v, graph.nodes[n].out[k])));
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
    g.nodes.push({ ...n, change: pairOf.get(i) || "added", parent: n.parent < 0 ? -1 : at.get(n.parent) });
  });
  gone.forEach(add);
  return g;
}
