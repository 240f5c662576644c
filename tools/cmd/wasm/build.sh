#!/usr/bin/env bash
# Puts the page that converts models in the browser into a folder: build.sh FOLDER. It needs Go and npm; any server of files will do for
# the result. onnxruntime-web runs the models: it comes from npm, in a pinned version, and is loaded when a model is run.
set -euo pipefail
[ $# = 1 ] || { echo "build.sh FOLDER" >&2; exit 2; }
mkdir -p "$1/ort"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/../../.."

version=1.30.0
sum=d2228df7e4616bc3348bf504ee888f3bec43789a273f0a63f3e68d203ce3bf71

GOOS=js GOARCH=wasm go build -trimpath -ldflags='-s -w' -o "$out/aton.wasm" ./tools/cmd/wasm
gzip -9 -n -f "$out/aton.wasm"
install -m 644 "$(go env GOROOT)/lib/wasm/wasm_exec.js" tools/cmd/wasm/worker.js "$out"
go run ./tools/cmd/wasm/page > "$out/index.html"

if [ ! -f "$out/ort/$version" ]; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  npm pack --silent --pack-destination "$work" "onnxruntime-web@$version" >/dev/null
  echo "$sum  $work/onnxruntime-web-$version.tgz" | sha256sum --check --quiet
  tar -xzf "$work/onnxruntime-web-$version.tgz" -C "$work"
  (cd "$work/package/dist" && install -m 644 ort.wasm.min.js ort-wasm-simd-threaded.mjs ort-wasm-simd-threaded.wasm "$out/ort")
  touch "$out/ort/$version"
fi
