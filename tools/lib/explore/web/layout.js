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
      return Object.assign(only, { parent: g, fresh: false }, only.children ? { title: c.title + "." + only.title, plain: c.title } : { module: [...(graph.nodes[only.node].also || []).map((m) => m.split(".").pop()).reverse(), c.title].filter((m, i, all) => all.indexOf(m) === i).join(" + ") });
    });
    fold(g, groups, (i) => graph.nodes[i].kind + graph.nodes[i].in.filter((v) => v >= 0 && graph.values[v].weight >= 0).map((v) => graph.values[v].type).join());
    if (g.children.length > 2 * chunk) {
      divide(g, groups, chunk, (list, i) => `${i} … ${i + list.length - 1}`);
      settle(g);
    }
  };
  settle(root);
  return { root, groups, leaves };
}

// body names a body of an operator.
function body(kind, i) { return kind === "If" ? ["then", "else"][i] || "branch " + i : "body"; }

// arithmetic is the set of nodes that depend on the sizes of the inputs alone, such as those that make shapes, positions and masks: what begins
// with Shape, Size or what they are in a program and reads no weights of floats.
function arithmetic(graph) {
  const out = new Set(), made = new Map();
  graph.nodes.forEach((n, i) => {
    const weights = n.in.some((v) => v >= 0 && graph.values[v].weight >= 0 && !/^(i|u|bool)/.test(graph.values[v].type));
    const from = n.in.filter((v) => v >= 0 && graph.values[v].weight < 0 && !graph.values[v].note);
    if (/^(Shape|Size|aten::(size|sym_size|numel|dim|len)|prim::shape)$/.test(n.kind) || (from.length && !weights && from.every((v) => made.has(v)))) {
      out.add(i);
      n.out.forEach((v) => made.set(v, i));
    }
  });
  graph.outputs.forEach((v) => { if (made.has(v)) out.delete(made.get(v)); });
  return out;
}

// divide cuts a long list of children into parts.
function divide(g, groups, size, title) {
  const parts = [];
  for (let i = 0; i < g.children.length; i += size) {
    const list = g.children.slice(i, i + size), part = { id: g.id + "#" + i / size, title: title(list, i), children: list, parent: g, nodes: 0, part: true };
    for (const c of list) {
      c.parent = part;
      part.nodes += c.children ? c.nodes : 1;
    }
    groups.set(part.id, part);
    parts.push(part);
  }
  g.children = parts;
}

const some = 20; // equal layers in a part of a long list of them
const alike = 3; // layers from which on equal ones are folded

// fold puts modules that follow each other and have the same operators, with weights of the same types, into one group, which says so.
function fold(g, groups, spell) {
  const sign = (c) => (c.children ? "(" + c.children.map(sign).join(" ") + ")" : spell(c.node));
  const out = [];
  for (let i = 0; i < g.children.length;) {
    const first = g.children[i], same = first.children && first.node === undefined && !first.fresh ? sign(first) : null;
    let end = i + 1;
    while (same && end < g.children.length && g.children[end].children && g.children[end].node === undefined && sign(g.children[end]) === same) end++;
    if (end - i < alike) { out.push(...g.children.slice(i, i + 1)); i++; continue; }
    const run = g.children.slice(i, end), last = run[run.length - 1];
    const equal = { id: first.id + "=" + last.id, title: `${first.plain || first.title} to ${last.plain || last.title}, equal`, children: run, parent: g, nodes: run.reduce((n, c) => n + c.nodes, 0), equal: run.length, fresh: true };
    run.forEach((c) => { c.parent = equal; });
    groups.set(equal.id, equal);
    if (run.length > 2 * some) divide(equal, groups, some, (list) => `${list[0].plain || list[0].title} to ${list[list.length - 1].plain || list[list.length - 1].title}`);
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
      boxes.set(id, { id, group: c.children ? c : null, node: c.node, open: isOpen, parent });
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
  // the parameters of a body are boxes in it, which what the node reads leads to; what a body gives leads to the node, which has the results
  const carried = [], read = new Set(graph.nodes.flatMap((n) => [...n.in, ...(n.bodies || []).flatMap((b) => b.returns)]));
  const entered = graph.nodes.map(() => new Set()); // the inputs that go into a body
  graph.nodes.forEach((n, i) => (n.bodies || []).forEach((body, k) => {
    const skip = n.in.length - body.params.length, group = t.groups.get("@" + i + "." + k);
    body.params.forEach((v, j) => {
      const input = j && skip > 0 ? j + skip : j, title = parameter(graph, n, v, j);
      if (!read.has(v)) return;
      const outer = at[i] && group && closedAround(group, open);
      if (at[i] && group && outer === null) {
        const id = "p" + v;
        boxes.set(id, { id, value: v, title, parent: "g" + group.id, carried: true });
        maker.set(v, id);
      } else if (outer) maker.set(v, outer);
      else maker.set(v, () => maker.get(n.in[input]));
      if (input < n.in.length && group) {
        entered[i].add(input);
        if (n.in[input] >= 0) carried.push([n.in[input], outer === null ? "p" + v : outer]);
      }
    });
    for (const v of body.returns) carried.push([v, at[i]]);
  }));
  const join = (v, to) => {
    let from = maker.get(v);
    for (let n = 0; typeof from === "function" && n < 64; n++) from = from();
    if (!from || !to || from === to) return;
    const key = from + "\n" + to;
    if (!arrows.has(key)) arrows.set(key, { from, to, values: [] });
    const a = arrows.get(key);
    if (!a.values.includes(v)) a.values.push(v);
  };
  graph.nodes.forEach((n, i) => n.in.forEach((v, k) => v >= 0 && !entered[i].has(k) && join(v, at[i])));
  for (const [v, to] of carried) join(v, to);
  graph.outputs.forEach((v, i) => {
    const id = "o" + i;
    boxes.set(id, { id, value: v, title: graph.outputNames[i] || graph.values[v].name, output: true });
    join(v, id);
  });
  return { boxes, arrows: [...arrows.values()] };
}

// closedAround is the outermost closed group that a group is in or that it is; null if all are open.
function closedAround(g, open) {
  let box = null;
  for (; g && g.id !== ""; g = g.parent) if (!open.has(g.id)) box = "g" + g.id;
  return box;
}

// parameter names a parameter of a body: by its own name or, where it has none, by what it is.
function parameter(graph, n, v, j) {
  const name = graph.values[v].text;
  if (!/^v?\d+$/.test(name)) return name;
  const first = n.kind === "Loop" ? 2 : 0, result = j >= first ? graph.values[n.out[j - first]] : null;
  return result ? result.text : ["iteration", "condition"][j] || name;
}

// aside chooses the arrows that are led at the side: of a box that three or more read, such as a mask or a cache, those to boxes below the
// first one. The others, which the main flow is of, are placed without them.
function aside(boxes, arrows) {
  const depth = new Map(), into = new Map();
  for (const a of arrows) into.set(a.to, [...(into.get(a.to) || []), a.from]);
  const deep = (id, seen) => {
    if (depth.has(id)) return depth.get(id);
    if (seen.has(id)) return 0; // a cycle of modules
    seen.add(id);
    const d = Math.max(-1, ...(into.get(id) || []).map((f) => deep(f, seen))) + 1;
    depth.set(id, d);
    return d;
  };
  const from = new Map();
  for (const a of arrows) {
    deep(a.to, new Set());
    from.set(a.from, [...(from.get(a.from) || []), a]);
  }
  const out = new Set();
  for (const list of from.values()) {
    if (list.length < 3) continue;
    const first = Math.min(...list.map((a) => deep(a.to, new Set())));
    for (const a of list) if (depth.get(a.to) > first && !boxes.get(a.to).output) out.add(a);
  }
  return out;
}

// beside leads arrows at the side of the boxes, one lane for each box that they come from, and gives the width of it all.
function beside(boxes, arrows, all, width) {
  const solid = [...boxes.values()].filter((b) => !b.open), lanes = { left: [], right: [] };
  const sources = new Map();
  for (const a of arrows) sources.set(a.from, [...(sources.get(a.from) || []), a]);
  let least = 10, most = width;
  for (const [id, list] of sources) {
    const from = boxes.get(id), to = list.map((a) => boxes.get(a.to)), top = Math.min(from.y, ...to.map((b) => b.y)) - 20, bottom = Math.max(from.y, ...to.map((b) => b.y)) + 20;
    const within = solid.filter((b) => b.y + b.height / 2 > top && b.y - b.height / 2 < bottom);
    const edge = { left: Math.min(...within.map((b) => b.x - b.width / 2)), right: Math.max(...within.map((b) => b.x + b.width / 2)) };
    const crossed = (side) => [from, ...to].reduce((n, b) => n + within.filter((o) => o !== b && Math.abs(o.y - b.y) < o.height / 2 && (side === "left" ? o.x < b.x : o.x > b.x)).length, 0);
    const side = crossed("right") < crossed("left") ? "right" : "left", sign = side === "left" ? -1 : 1;
    let x = edge[side] + 16 * sign;
    while (lanes[side].some((l) => Math.abs(l.x - x) < 9 && l.top < bottom && l.bottom > top)) x += 9 * sign;
    lanes[side].push({ x, top, bottom });
    least = Math.min(least, x - 10);
    most = Math.max(most, x + 10);
    for (const a of list) a.lane = { x, sign, low: ((lanes[side].length % 3) - 1) * 7 }; // they end beside each other
  }
  const shift = 10 - least;
  for (const b of boxes.values()) b.x += shift;
  for (const a of all) {
    if (!a.lane) {
      a.points.forEach((p) => { p.x += shift; });
      if (!a.points.includes(a.at)) a.at.x += shift;
      continue;
    }
    const from = boxes.get(a.from), to = boxes.get(a.to), { sign, low } = a.lane, x = a.lane.x + shift, end = to.y + low, down = Math.sign(end - from.y - from.height / 2 - 9) || 1;
    const fx = from.x + sign * Math.min(18, from.width / 4), out = from.y + from.height / 2, below = out + 9 + low / 2, tx = to.x + (sign * to.width) / 2, n = (k) => k.toFixed(1);
    a.corners = `M${n(fx)} ${n(out)}L${n(fx)} ${n(below)}L${n(x - 6 * sign)} ${n(below)}Q${n(x)} ${n(below)} ${n(x)} ${n(below + 6 * down)}L${n(x)} ${n(end - 6 * down)}Q${n(x)} ${n(end)} ${n(x - 6 * sign)} ${n(end)}L${n(tx)} ${n(end)}`;
    a.points = [{ x: fx, y: out }, { x: tx, y: end }];
    a.at = null;
  }
  return most - least + 10;
}

// place has dagre lay the boxes out, in the direction of reading.
export function place({ boxes, arrows }, size, labels, wide) {
  const g = new dagre.graphlib.Graph({ compound: true, multigraph: false });
  g.setGraph({ rankdir: "TB", nodesep: 22, ranksep: labels ? 14 : 30, edgesep: 12, marginx: 20, marginy: 20 });
  g.setDefaultEdgeLabel(() => ({}));
  const sided = aside(boxes, arrows), all = arrows;
  arrows = arrows.filter((a) => !sided.has(a));
  for (const b of boxes.values()) g.setNode(b.id, b.open ? {} : size(b));
  for (const b of boxes.values()) if (b.parent) g.setParent(b.id, b.parent);
  for (const a of arrows) {
    const text = labels ? a.label : "";
    g.setEdge(a.from, a.to, text ? { width: wide(text) + 6, height: 13, labelpos: "r", labeloffset: 4 } : {});
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
  const height = g.graph().height + tops.length * head;
  return { width: sided.size ? beside(boxes, [...sided], all, g.graph().width) : g.graph().width, height };
}
