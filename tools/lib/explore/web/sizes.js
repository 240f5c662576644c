// dynamic lists the sizes of inputs that are not numbers: each with its axes, and with the symbol that the archive has for one without a name.
export function dynamic(doc) {
  const out = new Map();
  for (const v of doc.graph ? doc.graph.inputs : []) axes(doc.graph.values[v]).forEach((d, i) => {
    if (/^[A-Za-z_][\w.]*$/.test(d)) out.set(d, [...(out.get(d) || []), `axis ${i} of ${doc.graph.values[v].name}`]);
  });
  return [...out].map(([name, where]) => [name, where, (doc.symbols || new Map()).get(name)]);
}

function axes(value) { return (/\[(.*)\]/.exec(value.type) || ["", ""])[1].split(","); }

// nameSizes names the sizes of a torch.export archive, which has no names for them, by the first input and axis that they are: s77 is shown as
// x.dim0.
export function nameSizes(doc) {
  if (!doc.graph || doc.symbols || /\.onnx$/i.test(doc.model)) return;
  const shown = new Map(), g = doc.graph;
  doc.symbols = new Map();
  for (const v of g.inputs) axes(g.values[v]).forEach((d, i) => {
    if (!/^s\d+$/.test(d) || shown.has(d)) return;
    shown.set(d, `${g.values[v].name}.dim${i}`);
    doc.symbols.set(shown.get(d), d);
  });
  if (!shown.size) return;
  const whole = new RegExp(`(?<![%\\w.$/:"-])(?:${[...shown.keys()].join("|")})(?![\\w.])`, "g"), named = (text) => text.replace(whole, (s) => shown.get(s));
  for (const v of g.values) v.type = named(v.type);
  doc.text = doc.text.map(named);
  g.sizes = Object.fromEntries(Object.entries(g.sizes).map(([k, n]) => [named(k), n]));
}

// example is an --input that names the sizes of a value.
export function example(doc, v) {
  let n = 0;
  const type = doc.graph.values[v].type.replace(/\[.*\]/, (all) => [...doc.symbols.keys()].reduce((t, name) => t.replaceAll(name, () => (n++ ? "size" + n : "batch")), all));
  return `--input '${doc.graph.values[v].name}:${type}'`;
}
