#!/usr/bin/env bash
# Proves that a newcomer's first two commands work: clones the last commit to an empty directory, with
# empty Go caches, and runs `make run` and `make test` there, each on its own clone.
set -euo pipefail
cd "$(dirname "$0")/.."

src=$PWD
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

export GOPATH=$place/gopath GOCACHE=$place/gocache GOMODCACHE=$place/gomodcache
# Module files are read-only by default, and then the clean-up could not remove them.
export GOFLAGS="${GOFLAGS:-} -modcacherw"

if [[ -n $(git status --porcelain) ]]; then
  echo "verify: the working tree has changes; only what is committed is verified" >&2
fi
for target in run test; do
  echo "verify: make $target"
  git clone --quiet --no-local "$src" "$place/$target"
  make -C "$place/$target" --no-print-directory "$target"
done
echo "verify: ok"
