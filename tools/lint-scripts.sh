#!/usr/bin/env bash
# Checks every shell script that git knows or would add: its syntax always, and shellcheck's
# opinion where shellcheck is installed.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts=()
while IFS= read -r file; do
  [[ -f $file ]] || continue
  IFS= read -r first <"$file" || continue
  [[ $first == '#!'*sh ]] && scripts+=("$file")
done < <(git ls-files --cached --others --exclude-standard)

for file in "${scripts[@]}"; do
  if head -1 "$file" | grep -q bash; then bash -n "$file"; else sh -n "$file"; fi
done
if command -v shellcheck >/dev/null; then
  shellcheck "${scripts[@]}"
fi
echo "scripts: ${#scripts[@]} checked"
