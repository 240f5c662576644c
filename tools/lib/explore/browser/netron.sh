#!/usr/bin/env bash
# Puts the page of Netron, beside which the explorer is looked at, into a folder: netron.sh FOLDER. It comes from PyPI in a pinned version; PYTHON
# names the interpreter whose pip fetches it. Its licence is MIT; it is no part of what is shipped.
set -euo pipefail
[ $# = 1 ] || { echo "netron.sh FOLDER" >&2; exit 2; }
version=9.3.3
sum=37e94827e9eddadc27b94b70aacdd531436ce56b467dcba3c52144709e3612bb
mkdir -p "$1"
out=$(cd "$1" && pwd)
[ -f "$out/$version" ] && exit
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${PYTHON:-python3}" -m pip download --quiet --no-deps --dest "$work" "netron==$version"
echo "$sum  $work/netron-$version-py3-none-any.whl" | sha256sum --check --quiet
"${PYTHON:-python3}" -m zipfile -e "$work/netron-$version-py3-none-any.whl" "$work"
cp "$work"/netron/* "$out"
touch "$out/$version"
