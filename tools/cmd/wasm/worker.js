// The worker beside the page: aton as WebAssembly and, when a model is to be run, onnxruntime-web. Go's functions are in globalThis.aton.

importScripts("wasm_exec.js");

const ready = (async () => {
  const go = new Go();
  const packed = await fetch("aton.wasm.gz");
  if (!packed.ok) throw new Error("aton.wasm.gz is missing beside the page");
  // a server that says Content-Encoding: gzip has it unpacked already
  const bytes = new Uint8Array(await packed.arrayBuffer());
  const stream = new Blob([bytes]).stream();
  const plain = bytes[0] === 0x1f ? stream.pipeThrough(new DecompressionStream("gzip")) : stream;
  const { instance } = await WebAssembly.instantiateStreaming(new Response(plain, { headers: { "Content-Type": "application/wasm" } }), go.importObject);
  go.run(instance);
})();

// exported is the converted model in parts, as Go writes it.
function exported() {
  const parts = [];
  aton.export((bytes) => parts.push(bytes));
  return new Blob(parts);
}

const types = { f32: ["float32", Float32Array], f64: ["float64", Float64Array], i64: ["int64", BigInt64Array], i32: ["int32", Int32Array], u8: ["uint8", Uint8Array], i8: ["int8", Int8Array], bool: ["bool", Uint8Array] };

const methods = {
  async load(file, inputs, opset) { return aton.load(new Uint8Array(await file.arrayBuffer()), file.name, inputs, opset); },
  kernels: () => aton.kernels(),
  numbers: () => aton.numbers(),
  pipeline: (text) => aton.pipeline(text),
  export: () => exported(),
  memory: () => aton.memory(),
  async run() {
    if (!globalThis.ort) importScripts("ort/ort.wasm.min.js");
    ort.env.wasm.wasmPaths = new URL("ort/", location.href).href;
    ort.env.wasm.numThreads = 1;
    const began = performance.now();
    const model = new Uint8Array(await exported().arrayBuffer());
    const session = await ort.InferenceSession.create(model);
    const feeds = {};
    for (const f of aton.feeds()) {
      const [type, array] = types[f.type] || [];
      if (!type) throw new Error(`input ${f.name} has elements of type ${f.type}`);
      feeds[f.name] = new ort.Tensor(type, new array(f.data.buffer, f.data.byteOffset, f.data.byteLength / array.BYTES_PER_ELEMENT), f.dims);
    }
    const made = performance.now();
    const results = await session.run(feeds);
    const ended = performance.now();
    const outputs = session.outputNames.map((name) => ({ name, type: results[name].type, dims: results[name].dims, first: Array.from(results[name].data.slice(0, 8), Number) }));
    await session.release();
    return { session: made - began, ms: ended - made, outputs };
  },
};

addEventListener("message", async ({ data: { id, method, args } }) => {
  try {
    await ready;
    const value = await methods[method](...args);
    if (value instanceof Error) throw value; // of Go
    postMessage({ id, value });
  } catch (e) {
    postMessage({ id, error: e.message || String(e) });
  }
});
