// The picture's boxes: modules and operators with bodies are groups, which are open or closed. dagre places them.

const head = 16; // height of the name of an open group
const chunk = 100; // children of a group, beyond which it is cut into parts

// tree makes the groups of a graph. A group is {id, title, kind, children, nodes}, a leaf {node}.
export function tree(graph) {
  const root = { id: "", title: "", children: [], parent: null, nodes: 0 };
  const groups = new Map([["", root]]);
  const group = (id, title, parent, node) => {
    const g = { id, title, children: [], parent, nodes: 0, node };
    groups.set(id, g);
    parent.children.push(g);
    return g;
  };
  const bodies = new Set(graph.nodes.filter((n) => n.parent >= 0).map((n) => n.parent));
  const leaves = [], sizes = arithmetic(graph);
  const times = new Map(); // how often a module has begun: one that is called again is another group
  let stack = []; // the groups of modules that the node before is in
  graph.nodes.forEach((n, i) => {
    let parent = root;
    if (n.parent >= 0) {
      const id = "@" + n.parent + "." + (n.branch || 0);
      parent = groups.get(id) || group(id, body(graph.nodes[n.parent].kind, n.branch || 0), groups.get("@" + n.parent));
    } else {
      const parts = n.module ? n.module.split(".") : [];
      let same = 0;
      while (same < parts.length && same < stack.length && stack[same].title === parts[same]) same++;
      stack = stack.slice(0, same);
      for (; same < parts.length; same++) {
        const path = parts.slice(0, same + 1).join("."), k = times.get(path) || 0;
        times.set(path, k + 1);
        stack.push(group(k ? path + "~" + k : path, parts[same], stack[same - 1] || root));
      }
      parent = stack[stack.length - 1] || root;
    }
    if (bodies.has(i)) parent = group("@" + i, n.kind, parent, i);
    const leaf = { node: i, parent, sizes: sizes.has(i) };
    leaves.push(leaf);
    parent.children.push(leaf);
    for (let g = parent; g; g = g.parent) g.nodes++;
  });
  // a module of one operator is that operator, one of one module is that module, and a long list of children has parts
  const settle = (g) => {
    g.children.forEach((c) => c.children && settle(c));
    g.children = g.children.map((c) => {
      const only = c.children && c.children.length === 1 && c.node === undefined ? c.children[0] : null;
      if (!only || (only.children && only.node !== undefined)) return c;
      groups.delete(c.id);
      return Object.assign(only, { parent: g }, only.children ? { title: c.title + "." + only.title } : { module: c.title });
    });
    fold(g, groups, (i) => graph.nodes[i].kind + graph.nodes[i].in.filter((v) => v >= 0 && graph.values[v].weight >= 0).map((v) => graph.values[v].type).join());
    if (g.children.length > 2 * chunk) {
      const parts = [];
      for (let i = 0; i < g.children.length; i += chunk) {
        const part = { id: g.id + "#" + i / chunk, title: `${i} … ${Math.min(i + chunk, g.children.length) - 1}`, children: g.children.slice(i, i + chunk), parent: g, nodes: 0, part: true };
        for (const c of part.children) {
          c.parent = part;
          part.nodes += c.children ? c.nodes : 1;
        }
        groups.set(part.id, part);
        parts.push(part);
      }
      g.children = parts;
      settle(g);
    }
  };
  settle(root);
  return { root, groups, leaves };
}

// body names a body of an operator.
function body(kind, i) { return kind === "If" ? ["then", "else"][i] || "branch " + i : "body"; }

// arithmetic is the set of nodes that depend on the sizes of the inputs alone, such as those that make shapes, positions and masks: what begins
// with Shape or Size and reads no weights of floats.
function arithmetic(graph) {
  const out = new Set(), made = new Map();
  graph.nodes.forEach((n, i) => {
    const weights = n.in.some((v) => v >= 0 && graph.values[v].weight >= 0 && !/^(i|u|bool)/.test(graph.values[v].type));
    const from = n.in.filter((v) => v >= 0 && graph.values[v].weight < 0 && !graph.values[v].note);
    if (n.kind === "Shape" || n.kind === "Size" || (from.length && !weights && from.every((v) => made.has(v)))) {
      out.add(i);
      n.out.forEach((v) => made.set(v, i));
    }
  });
  graph.outputs.forEach((v) => { if (made.has(v)) out.delete(made.get(v)); });
  return out;
}

const alike = 3; // layers from which on equal ones are folded

// fold puts modules that follow each other and have the same operators, with weights of the same types, into one group, which says so.
function fold(g, groups, spell) {
  const sign = (c) => (c.children ? "(" + c.children.map(sign).join(" ") + ")" : spell(c.node));
  const out = [];
  for (let i = 0; i < g.children.length;) {
    const first = g.children[i], same = first.children && first.node === undefined && !first.equal ? sign(first) : null;
    let end = i + 1;
    while (same && end < g.children.length && g.children[end].children && g.children[end].node === undefined && sign(g.children[end]) === same) end++;
    if (end - i < alike) { out.push(...g.children.slice(i, i + 1)); i++; continue; }
    const run = g.children.slice(i, end), last = run[run.length - 1];
    const equal = { id: first.id + "=" + last.id, title: `${first.title} to ${last.title}, equal`, children: run, parent: g, nodes: run.reduce((n, c) => n + c.nodes, 0), equal: run.length };
    run.forEach((c) => { c.parent = equal; });
    groups.set(equal.id, equal);
    out.push(equal);
    i = end;
  }
  g.children = out;
}

// closed is what a picture begins with: whole levels of modules are open, as far as it stays small. Equal layers stay folded.
export function closed(t, most) {
  const open = new Set([""]);
  const count = (g) => g.children.filter((c) => c.children || !c.sizes).length;
  let level = [t.root], boxes = count(t.root);
  for (;;) {
    level = level.flatMap((g) => g.children).filter((c) => c.children && !c.equal && c.node === undefined);
    const before = boxes;
    boxes += level.reduce((n, g) => n + count(g) - 1, 0);
    if (!level.length || boxes > (before < most / 3 ? 3 * most : most)) return open;
    level.forEach((g) => open.add(g.id));
  }
}

// opened chooses which groups are open at first: as many, the small ones first, as most boxes allow.
export function opened(t, most) {
  const open = new Set([""]);
  let boxes = t.root.children.length;
  const queue = t.root.children.filter((c) => c.children);
  while (queue.length) {
    queue.sort((a, b) => b.children.length - a.children.length);
    const g = queue.pop();
    if (boxes + g.children.length - 1 > most) break;
    boxes += g.children.length - 1;
    open.add(g.id);
    queue.push(...g.children.filter((c) => c.children));
  }
  return open;
}

// shape gives the boxes and arrows that are in sight; sizes says whether the arithmetic of sizes is.
export function shape(graph, t, open, sizes) {
  const boxes = new Map(), arrows = new Map();
  const away = (c) => !sizes && (c.children ? c.node === undefined && c.children.every(away) : c.sizes);
  const sight = (leaf) => { // the box that stands for a leaf, none for one that is left out
    if (away(leaf)) return null;
    let box = "n" + leaf.node;
    for (let g = leaf.parent; g && g.id !== ""; g = g.parent) if (!open.has(g.id)) box = "g" + g.id;
    return box;
  };
  const visit = (g) => {
    for (const c of g.children) {
      if (away(c)) continue;
      const id = c.children ? "g" + c.id : "n" + c.node;
      const parent = g.id === "" ? null : "g" + g.id;
      const isOpen = c.children && open.has(c.id);
      boxes.set(id, { id, group: c.children ? c : null, node: c.children ? c.node : c.node, open: isOpen, parent });
      if (isOpen) visit(c);
    }
  };
  visit(t.root);
  const maker = new Map();
  graph.inputs.forEach((v) => {
    boxes.set("i" + v, { id: "i" + v, value: v, title: graph.values[v].name });
    maker.set(v, "i" + v);
  });
  const at = t.leaves.map(sight);
  graph.nodes.forEach((n, i) => n.out.forEach((v) => maker.set(v, at[i])));
  const join = (v, to) => {
    const from = maker.get(v);
    if (!from || !to || from === to) return;
    const key = from + "\n" + to;
    if (!arrows.has(key)) arrows.set(key, { from, to, values: [] });
    const a = arrows.get(key);
    if (!a.values.includes(v)) a.values.push(v);
  };
  graph.nodes.forEach((n, i) => n.in.forEach((v) => v >= 0 && join(v, at[i])));
  graph.outputs.forEach((v, i) => {
    const id = "o" + i;
    boxes.set(id, { id, value: v, title: graph.outputNames[i] || graph.values[v].name, output: true });
    join(v, id);
  });
  return { boxes, arrows: [...arrows.values()] };
}

// place has dagre lay the boxes out, in the direction of reading.
export function place({ boxes, arrows }, size, labels) {
  const g = new dagre.graphlib.Graph({ compound: true, multigraph: false });
  g.setGraph({ rankdir: "TB", nodesep: 22, ranksep: labels ? 24 : 36, edgesep: 12, marginx: 20, marginy: 20 });
  g.setDefaultEdgeLabel(() => ({}));
  for (const b of boxes.values()) g.setNode(b.id, b.open ? {} : size(b));
  for (const b of boxes.values()) if (b.parent) g.setParent(b.id, b.parent);
  for (const a of arrows) {
    const text = labels ? a.label : "";
    g.setEdge(a.from, a.to, text ? { width: text.length * 5.4 + 6, height: 13, labelpos: "r", labeloffset: 4 } : {});
  }
  dagre.layout(g);
  for (const b of boxes.values()) Object.assign(b, (({ x, y, width, height }) => ({ x, y, width, height }))(g.node(b.id)));
  // an open group has a line for its name: what is below its top moves down by that
  const top = (b) => b.y - b.height / 2;
  const tops = [...new Set([...boxes.values()].filter((b) => b.open).map((b) => Math.round(top(b))))].sort((x, y) => x - y);
  const down = (y) => {
    let lo = 0, hi = tops.length;
    while (lo < hi) {
      const mid = (lo + hi) >> 1;
      if (tops[mid] <= Math.round(y)) lo = mid + 1;
      else hi = mid;
    }
    return lo * head;
  };
  for (const a of arrows) {
    const e = g.edge(a.from, a.to);
    a.points = e.points.map((p) => ({ x: p.x, y: p.y + down(p.y) }));
    a.at = e.x !== undefined ? { x: e.x, y: e.y + down(e.y) } : a.points[a.points.length >> 1];
  }
  for (const b of boxes.values()) {
    if (!b.open) { b.y += down(b.y); continue; }
    const from = top(b) + down(top(b)) - head, to = b.y + b.height / 2 + down(b.y + b.height / 2);
    b.y = (from + to) / 2;
    b.height = to - from;
  }
  // an arrow ends at its box, wherever that has moved
  for (const a of arrows) {
    const p = a.points, from = boxes.get(a.from), to = boxes.get(a.to);
    if (Math.abs(p[0].y - from.y - from.height / 2) < 2 * head) p[0].y = from.y + from.height / 2;
    if (Math.abs(p[p.length - 1].y - to.y + to.height / 2) < 2 * head) p[p.length - 1].y = to.y - to.height / 2;
  }
  return { width: g.graph().width, height: g.graph().height + tops.length * head };
}
