// What the boxes of the picture are coloured by. A scheme gives each node a key of a list of colours, or a share from 0 to 1 of a scale.

const families = {
  matrix: /^(Conv|ConvTranspose|ConvInteger|QLinearConv|MatMul|MatMulInteger|QLinearMatMul|Gemm|Einsum|LSTM|GRU|RNN|Attention)$/,
  act: /^(Relu|LeakyRelu|Sigmoid|Tanh|Gelu|Elu|Selu|Softmax|LogSoftmax|HardSwish|HardSigmoid|Clip|Erf|PRelu|Softplus|Mish|Swish)$/,
  norm: /^(BatchNormalization|LayerNormalization|InstanceNormalization|GroupNormalization|RMSNormalization|LpNormalization|LRN|Reduce.*|GlobalAveragePool|GlobalMaxPool|MaxPool|AveragePool)$/,
  move: /^(Reshape|Flatten|Squeeze|Unsqueeze|Transpose|Concat|Split|Slice|Gather.*|Scatter.*|Expand|Tile|Pad|Shape|Size|Cast|CastLike|Identity|Resize|ConstantOfShape|Range|QuantizeLinear|DequantizeLinear|DynamicQuantizeLinear)$/,
  flow: /^(If|Loop|Scan|Sequence.*|Optional.*)$/,
};
const called = { matrix: "products", act: "activations", norm: "norms, pools, sums", move: "shapes and moves", flow: "control flow", elem: "elementwise" };

// of the operators of PyTorch
const programs = {
  matrix: /^(conv\w*|_convolution|linear|matmul|mm|bmm|addmm|baddbmm|einsum|lstm|gru|scaled_dot_product_attention|multi_head_attention\w*)$/,
  act: /^(relu6?_?|leaky_relu|sigmoid|tanh|gelu|elu|selu|silu|softmax|log_softmax|hardswish|hardsigmoid|hardtanh|clamp\w*|erf|prelu|softplus|mish)$/,
  norm: /^(\w*_norm|sum|mean|prod|amax|amin|max_pool\w*|avg_pool\w*|adaptive_\w*pool\w*)$/,
  move: /^(view|reshape|flatten|squeeze|unsqueeze|transpose|permute|t|cat|stack|split\w*|chunk|slice|select|index\w*|gather|scatter\w*|expand|repeat|pad|constant_pad_nd|size|to|contiguous|embedding|arange|quantize_per_\w+|dequantize|ListConstruct|ListUnpack|TupleConstruct|TupleUnpack|GetAttr|__getitem__|item)$/,
  flow: /^(If|Loop|CallMethod|CallFunction)$/,
};

// family is what an operator is for.
export function family(kind) {
  const name = kind.replace(/^.*::/, "");
  for (const [what, re] of Object.entries(kind.includes("::") ? programs : families)) if (re.test(name)) return what;
  return "elem";
}

// mix is a colour of two: share of the second one. Both are #rrggbb.
export function mix(a, b, share) {
  const part = (s, i) => parseInt(s.slice(1 + 2 * i, 3 + 2 * i), 16);
  return "#" + [0, 1, 2].map((i) => Math.round(part(a, i) * (1 - share) + part(b, i) * share).toString(16).padStart(2, "0")).join("");
}

// hue is a colour of its own for each number, far from those of its neighbours.
function hue(n, dark) {
  const h = (n * 137.508 + 210) % 360, s = 0.62, l = dark ? 0.6 : 0.48, c = (1 - Math.abs(2 * l - 1)) * s;
  const f = (k) => Math.round(255 * (l - c / 2 + c * Math.max(0, Math.min(1, Math.abs((((h / 60 + k) % 6) + 6) % 6 - 3) - 1)))).toString(16).padStart(2, "0");
  return "#" + f(0) + f(4) + f(2);
}

const widths = ["f32", "f16", "bf16", "f64", "i64", "i32", "bool", "i8", "u8", "f8"];

// layer is the part of a module's path that names its layer: up to its first number, or its first name.
function layer(path) {
  const parts = path.split("."), at = parts.findIndex((p) => /^\d+$/.test(p));
  return at >= 0 ? parts.slice(0, at + 1).join(".") : parts[0];
}

export const changes = { added: "added", changed: "changed", removed: "removed", same: "unchanged" };

// schemes has, by name: title, and of(app, graph), which gives { key(node) or share(node), name(key), from, to } or the reason why it cannot.
export const schemes = {
  operator: { title: "operator", of: () => ({ key: (n) => family(n.kind), name: (k) => called[k], keys: Object.keys(called) }) },
  layer: {
    title: "layer",
    of: (app, g) => (g.nodes.some((n) => n.module) ? { key: (n) => (n.module ? layer(n.module) : ""), name: (k) => k || "no module" } : "no node has a module"),
  },
  type: { title: "type", of: (app, g) => ({ key: (n) => (n.out.length ? /^\w+/.exec(g.values[n.out[0]].type)?.[0] || "" : ""), name: (k) => k || "unknown", order: widths }) },
  cost: {
    title: "cost",
    of: (app, g) => {
      const all = g.nodes.reduce((s, n) => s + Math.max(0, n.flops), 0);
      return all > 0 ? { sum: (n) => Math.max(0, n.flops) / all, from: "0 operations", to: (top) => `${(100 * top).toPrecision(2)} % of them` } : "the cost of this stage is not known";
    },
  },
  error: {
    title: "error",
    of: (app, g) => {
      const numbers = app.numbers;
      if (!numbers || !numbers.values) return "there are no numbers: run the model in the view Numbers";
      const run = (n) => n.out.map((v) => numbers.values[g.values[v].text]).find((r) => r && r.stats);
      if (numbers.differs) {
        const far = (n) => Math.max(-1, ...n.out.map((v) => numbers.differs[g.values[v].text] ?? -1));
        return { most: (n) => (far(n) < 0 ? -1 : Math.max(0, Math.min(1, (Math.log10(Math.max(far(n), 1e-8)) + 8) / 8))), from: "equal", middle: "differs by 1e-4 of its greatest element", to: () => "by as much as that" };
      }
      return { key: (n) => (n.out.some((v) => g.values[v].text === numbers.wrong) ? "wrong" : !run(n) ? "none" : run(n).stats.nan || run(n).stats.inf ? "nan" : "finite"), keys: ["wrong", "nan", "finite", "none"], name: (k) => ({ wrong: "wrong", nan: "NaN or infinite", finite: "finite", none: "not computed" })[k] };
    },
  },
  change: { title: "change", of: (app, g) => (g.compared ? { key: (n) => n.change, keys: Object.keys(changes), name: (k) => changes[k] } : "there is no other model: aton explore OLD NEW") },
};

// paints gives the colours of a scheme: fill(nodes) is that of a box that stands for nodes, legend lists [colour, name].
export function paints(scheme, nodes, shown, css, dark) {
  const named = { wrong: css.bad, nan: css.warn, finite: css.act, none: css.move, added: css.act, changed: css.warn, removed: css.bad, same: css.node };
  const strength = dark ? 0.42 : 0.3, tint = (c) => mix(css.node, c, strength);
  if (scheme.key) {
    const keys = scheme.keys || [...new Set(nodes.map(scheme.key))].sort((a, b) => rank(a) - rank(b));
    function rank(k) { return scheme.order ? (scheme.order.indexOf(k) + 1 || 99) : 0; }
    const colour = new Map(keys.map((k, i) => [k, named[k] || css[k] || (k === "" ? css.move : hue(i, dark))]));
    const one = (list) => {
      const all = new Set(list.map(scheme.key));
      if (scheme.keys && scheme.keys[0] !== "matrix") for (const k of scheme.keys) if (all.has(k) && (k !== "same" || all.size === 1)) return k; // the worst one
      return all.size === 1 ? [...all][0] : null;
    };
    return {
      fill: (list) => { const k = one(list); return k === null || k === "same" || list.length === 0 ? null : tint(colour.get(k)); },
      legend: keys.filter((k) => nodes.some((n) => scheme.key(n) === k)).slice(0, 12).map((k) => [k === "same" ? css.node : tint(colour.get(k)), scheme.name(k)]),
    };
  }
  const of = scheme.sum ? (list) => list.reduce((s, n) => s + scheme.sum(n), 0) : (list) => Math.max(-1, ...list.map(scheme.most));
  const top = scheme.sum ? Math.max(1e-12, ...shown.map(of)) : 1, hot = (t) => mix(css.node, css.bad, (dark ? 0.6 : 0.5) * t);
  return {
    fill: (list) => { const x = list.length ? of(list) : -1; return x < 0 ? null : hot(scheme.sum ? Math.sqrt(x / top) : x); },
    legend: [[hot(0), scheme.from], [hot(0.5), scheme.middle || ""], [hot(1), scheme.to(top)]],
  };
}
