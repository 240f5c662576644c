#!/bin/bash
# What a release must be: check.sh PYTHON [OTHER CHECKOUT]. Builds it again from a copy of the commit at another place, with a build cache of its own
# where FRESH=1, and compares all bytes; then starts every binary: those for another Linux under qemu-user, those for Windows under wine if it is there.
set -euo pipefail
cd "$(dirname "$0")/../../.."
python=$1
[[ $python != */* ]] || python=$(realpath -s -- "$python") # it runs in other folders, too
copy=$(mktemp -d)
trap 'rm -rf "$copy" || { sleep 5; rm -rf "$copy"; }' EXIT # wine writes for a while after it has ended
[ -z "$(git status --porcelain)" ] || { echo "the checkout has changes: a release is made of a commit"; exit 1; }
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

GOWORK=off go -C tools/cmd/release run . ${python:+-python "$python"}
git archive --prefix=elsewhere/ HEAD | tar -x -C "$copy"
[ -z "${FRESH:-}" ] || export GOCACHE="$copy/cache"
version=$(out/release/linux-amd64/aton --version); version=${version##* }
GOWORK=off ATON_VERSION=$version go -C "$copy/elsewhere/tools/cmd/release" run . ${python:+-python "$python"}
diff -r out/dist "$copy/elsewhere/out/dist"
echo "two builds at two places are equal: $(wc -l <out/dist/SHA256SUMS) files"
(cd out/dist && sha256sum --check --quiet SHA256SUMS)

model=testdata/fixtures/torch2.15/convnet.pt2
start() { # NAME COMMAND...: its version is the release's, and it converts a model to the bytes that the others write
  local name=$1; shift
  [ "$("$@" --version | tr -d '\r')" = "aton version $version" ] || { echo "$name: --version is not $version"; exit 1; }
  "$@" export "$model" -o "$copy/${name/\//-}.onnx" --repro '' 2>"$copy/said" || { cat "$copy/said"; exit 1; }
  cmp "$copy/linux-amd64.onnx" "$copy/${name/\//-}.onnx"
  echo "$name: starts, and writes the same bytes"
}
start linux/amd64 out/release/linux-amd64/aton
if command -v qemu-aarch64 >/dev/null; then start linux/arm64 qemu-aarch64 out/release/linux-arm64/aton; else echo "linux/arm64: not started, qemu-user is missing"; fi
wine=$(command -v wine64 wine || ls /usr/lib/wine/wine64 2>/dev/null || true); wine=${wine%%$'\n'*}
export WINEDEBUG=-all WINEPREFIX=$copy/wine
if [ -z "$wine" ]; then
  echo "windows/amd64: not started, wine is missing"
elif [[ $("$wine" out/release/windows-amd64/aton.exe --version 2>&1 || true) == *'bcryptprimitives.dll not found'* ]]; then # no pipe to grep -q: wine fails when that ends
  echo "windows/amd64: not started, this wine is too old for programs of Go (before 9)"
else
  start windows/amd64 "$wine" out/release/windows-amd64/aton.exe
fi
echo "darwin, windows/arm64: built, not started"
if [ "$(id -u)" = 0 ]; then # what a container from scratch has: nothing but the binary
  mkdir "$copy/root"
  cp out/release/linux-amd64/aton "$model" "$copy/root/"
  chroot "$copy/root" /aton export "/$(basename "$model")" -o /model.onnx --repro '' 2>/dev/null
  cmp "$copy/linux-amd64.onnx" "$copy/root/model.onnx"
  echo "linux/amd64: runs in an empty root"
fi
if command -v dpkg-deb >/dev/null; then
  for package in out/dist/*.deb; do dpkg-deb --contents "$package" | grep ' ./usr/bin/aton$' >/dev/null; dpkg-deb --field "$package" Package Version Architecture | paste -sd' '; done
fi
