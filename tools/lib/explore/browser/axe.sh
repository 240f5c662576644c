#!/usr/bin/env bash
# Puts axe-core, which the tests ask about accessibility, into a folder: axe.sh FOLDER. It comes from npm in a pinned version. Its licence is
# MPL-2.0; it is a tool of the tests, and no part of what is shipped.
set -euo pipefail
[ $# = 1 ] || { echo "axe.sh FOLDER" >&2; exit 2; }
version=4.14.1
sum=e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745
mkdir -p "$1"
out=$(cd "$1" && pwd)
[ -f "$out/$version" ] && exit
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
npm pack --silent --pack-destination "$work" "axe-core@$version" >/dev/null
echo "$sum  $work/axe-core-$version.tgz" | sha256sum --check --quiet
tar -xzf "$work/axe-core-$version.tgz" -C "$work"
install -m 644 "$work/package/axe.min.js" "$out"
touch "$out/$version"
