#!/bin/bash
# Builds aton for platforms and compares what the builds write: run.sh OUT linux/s390x linux/arm64 windows/amd64 ...
# A build for this machine comes first, made twice: the bytes of the two are equal. Those for another Linux run under qemu-user,
# those for other systems are only built.
set -euo pipefail
cd "$(dirname "$0")/../../.."
out=$1; shift
rm -rf "$out"; mkdir -p "$out"

build() { # FOLDER GOOS/GOARCH
  GOOS=${2%/*} GOARCH=${2#*/} CGO_ENABLED=0 go build -trimpath -buildvcs=false -tags nocuda -o "$1/" ./tools/cmd/aton ./tools/cmd/aton-opt
}

run() { # FOLDER COMMAND...: exports programs and an ONNX file, and tells what was written
  local folder=$1; shift
  mkdir -p "$folder"
  for f in testdata/fixtures/*/*.pt2; do "$@" export "$f" -o "$folder/$(basename "$(dirname "$f")").$(basename "$f").onnx" --repro '' >/dev/null 2>&1; done
  for f in "$folder"/*.pt2.onnx; do "$@" export "$f" --opset 9 --target onnx -o "$f.9.onnx" --repro '' >/dev/null 2>&1 || rm -f "$f.9.onnx"; done
  (cd "$folder" && sha256sum -- *.onnx)
}

native=$(go env GOOS)/$(go env GOARCH)
build "$out/first" "$native"
build "$out/second" "$native"
diff -r "$out/first" "$out/second"
echo "$native: two builds are equal, $(stat -c %s "$out/first/aton") bytes"
run "$out/native" "$out/first/aton" >"$out/native.sums"
[ "$(wc -l <"$out/native.sums")" -ge 8 ] || { echo "nothing was written"; exit 1; }
for p in "$@"; do
  folder=$out/${p/\//-}
  build "$folder" "$p"
  case $p in
    linux/386) emulator= ;;
    linux/arm64) emulator=qemu-aarch64 ;;
    linux/*) emulator=qemu-${p#*/} ;;
    *) echo "$p: builds"; continue ;;
  esac
  if [ -n "$emulator" ] && ! command -v "$emulator" >/dev/null; then
    echo "$p: $emulator is not on PATH: install Debian's qemu-user"; exit 1
  fi
  run "$folder/files" $emulator "$folder/aton" >"$out/sums"
  diff "$out/native.sums" "$out/sums"
  echo "$p: writes the same $(wc -l <"$out/sums") files"
done
