#!/usr/bin/env bash
# debian-packages.sh PACKAGE...: installs those that are missing. Debian, as root; else it says which. Says nothing if all is there.
set -euo pipefail
missing=()
for package; do
  state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || state=none
  [[ $state == installed ]] || missing+=("$package")
done
((${#missing[@]})) || exit 0
if ((EUID)); then
  echo "missing: ${missing[*]}; as root: apt-get install ${missing[*]}" >&2
  exit 1
fi
echo "installing ${missing[*]}" >&2
apt=(apt-get -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 -qq)
"${apt[@]}" update
DEBIAN_FRONTEND=noninteractive "${apt[@]}" -y --no-install-recommends install "${missing[@]}" >&2
