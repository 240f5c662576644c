#!/usr/bin/env bash
# Fetches what the explorer has from elsewhere: dagre, which lays graphs out, as npm has it. The files are committed.
set -euo pipefail
cd "$(dirname "$0")/web/vendor"

version=3.1.3
sum=12441833c8af49e5a241d94bfd53159875965876b3f4f3214abafe1ed6a9ee4c

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
npm pack --silent --pack-destination "$work" "@dagrejs/dagre@$version" >/dev/null
echo "$sum  $work/dagrejs-dagre-$version.tgz" | sha256sum --check --quiet
tar -xzf "$work/dagrejs-dagre-$version.tgz" -C "$work"
install -m 644 "$work/package/dist/dagre.min.js" dagre.min.js
install -m 644 "$work/package/LICENSE" dagre.LICENSE
