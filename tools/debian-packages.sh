#!/bin/sh
# debian-packages.sh PACKAGE...: installs those that are missing. Debian, as root; else it says which. Says nothing if all is there.
# env: AS_ROOT  a command that runs another as root, such as `sudo -n`, for other users
set -eu
missing=
for package; do
	state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || state=none
	[ "$state" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
if ! command -v apt-get >/dev/null; then
	echo "missing:$missing, as Debian names them, and there is no apt-get: install what this system has in their place" >&2
	exit 1
fi
as_root=
if [ "$(id -u)" != 0 ]; then
	as_root=${AS_ROOT:-}
	if [ -z "$as_root" ] || ! command -v "${as_root%% *}" >/dev/null; then
		echo "missing:$missing; as root: apt-get install$missing" >&2
		exit 1
	fi
fi
echo "installing$missing" >&2
# shellcheck disable=SC2086 # lists of words
$as_root apt-get -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 -qq update
# shellcheck disable=SC2086
$as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 -qq -y \
	--no-install-recommends install $missing >&2
