#!/usr/bin/env bash
# bundle.sh DIR: builds rnic in DIR with the two libraries of `rnic run` in itself (the tag `bundled`; Linux, needs gcc).
# LIBRARIES is a folder that has them already; GOARCH may be another processor then.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$1 go=${GO:-go} libs=${LIBRARIES:-}

if [[ -z $libs ]]; then
  libs=$(mktemp -d)
  trap 'rm -rf "$libs"' EXIT
  GO=$go rdmacore/build "$libs"
fi

made=cmd/rnic/internal/bundle/made
rm -rf "$made"
mkdir -p "$made" "$out"
(cd "$libs" && sha256sum ./*.so | sed 's,\./,,') >"$made/SHA256SUMS"
cp "$libs"/*.so "$made/"
gzip -9n "$made"/*.so
# What runs C programs needs no C itself: the same file serves old systems and new ones.
CGO_ENABLED=0 "$go" build -buildvcs=auto -tags bundled -trimpath -ldflags='-s -w' -o "$out/" ./cmd/rnic
