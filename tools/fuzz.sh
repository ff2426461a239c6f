#!/usr/bin/env bash
# Runs every fuzz target, one after the other, and prints one line a target.
#   FUZZTIME (10m)  time for each target, or a count such as 100000x
#   PKGS (work)     packages to look in: those of all modules of go.work
# Exits 1 if a target found something; the input is then under that package's testdata/fuzz.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go} fuzztime=${FUZZTIME:-10m} pkgs=${PKGS:-work}

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Everything is compiled before the first target runs: a package that does not build ends the run.
targets=()
# shellcheck disable=SC2086 # PKGS is a list
for pkg in $("$go" list $pkgs); do
  names=$("$go" test -list '^Fuzz' "$pkg")
  while read -r name; do
    [[ $name == Fuzz* ]] && targets+=("$pkg $name")
  done <<<"$names"
done
((${#targets[@]})) || { echo "fuzz: no targets" >&2; exit 1; }

failed=0
printf '%-32s %-32s %14s  %s\n' package target execs result
for target in "${targets[@]}"; do
  read -r pkg name <<<"$target"
  result=ok
  # Minimising what is merely interesting would take most of the time.
  "$go" test -run '^$' -fuzz "^$name\$" -fuzztime "$fuzztime" -fuzzminimizetime 2s "$pkg" >"$log" 2>&1 || result=FAILED
  execs=$(sed -n 's/.*execs: \([0-9]*\).*/\1/p' "$log" | tail -1)
  printf '%-32s %-32s %14s  %s\n' "${pkg##*/softrnic/}" "$name" "${execs:-0}" "$result"
  if [[ $result != ok ]]; then
    failed=$((failed + 1))
    sed 's/^/    /' "$log"
  fi
done
echo "fuzz: ${#targets[@]} targets, $failed failed"
((failed == 0))
