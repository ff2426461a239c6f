#!/bin/sh
# Installs softrnic (rnic, and on Linux the libraries with which it runs C programs) without root, and takes it away again.
#
#   sh install.sh [FROM]         FROM is a folder or an address with SHA256SUMS and the archives of a release. Default: the folder
#                                of this script, if SHA256SUMS is there, else the newest release of the project's page
#   sh install.sh --uninstall    removes what it installed
#
# env: PREFIX  where to: PREFIX/bin, PREFIX/lib/softrnic, PREFIX/share. Default: ~/.local
set -eu

releases=https://github.com/softrnic/softrnic/releases/latest/download

fail() {
	echo "install.sh: $*" >&2
	exit 1
}

usage() {
	echo "usage: [PREFIX=DIR] sh install.sh [FROM], or [PREFIX=DIR] sh install.sh --uninstall" >&2
	exit 2
}

# get NAME FILE: takes a file of the release.
get() {
	case $from in
	http://* | https://*)
		if command -v curl >/dev/null; then
			curl -fsSL --retry 3 -o "$2" "$from/$1" || fail "$from/$1 cannot be had; give another FROM: sh install.sh FROM"
		elif command -v wget >/dev/null; then
			wget -q -O "$2" "$from/$1" || fail "$from/$1 cannot be had; give another FROM: sh install.sh FROM"
		else
			fail "there is neither curl nor wget; fetch SHA256SUMS and the archive to a folder, and give that: sh install.sh FOLDER"
		fi
		;;
	*) cp "$from/$1" "$2" 2>/dev/null || fail "there is no $1 in $from; give a folder or an address that has it" ;;
	esac
}

# hash FILE: prints its SHA-256.
hash() {
	if command -v sha256sum >/dev/null; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d' ' -f1
}

# remove: removes what the list has, files first and then folders, the innermost first; a folder that has other files stays.
remove() {
	while read -r kind path; do
		case $kind in
		file) rm -f "$prefix/$path" ;;
		folder) if [ "$path" = . ]; then rmdir "$prefix" 2>/dev/null || :; else rmdir "$prefix/$path" 2>/dev/null || :; fi ;;
		esac
	done <"$1"
}

uninstall() {
	[ -f "$list" ] || fail "there is nothing of install.sh below $prefix; PREFIX says where it was installed"
	cp "$list" "$work/list"
	remove "$work/list"
	echo "softrnic is no more below $prefix"
}

install_it() {
	case $(uname -s) in
	Linux) system=linux ;;
	Darwin) system=darwin ;;
	*) fail "there is no archive for $(uname -s) that this script installs; see the release's files" ;;
	esac
	case $(uname -m) in
	x86_64 | amd64) arch=amd64 ;;
	aarch64 | arm64) arch=arm64 ;;
	*) fail "there is no archive for $(uname -m); build rnic from source: go install github.com/softrnic/softrnic/cmd/rnic@latest" ;;
	esac

	command -v sha256sum >/dev/null || command -v shasum >/dev/null ||
		fail "there is neither sha256sum nor shasum, and what is not verified is not installed"

	get SHA256SUMS "$work/sums"
	name=$(sed -n "s/^[0-9a-f]*  \(softrnic-[0-9][0-9A-Za-z.-]*-$system-$arch\.tar\.gz\)\$/\1/p" "$work/sums")
	case $name in
	"") fail "$from/SHA256SUMS names no archive for $system/$arch" ;;
	*"
"*) fail "$from/SHA256SUMS names several archives for $system/$arch; give a FROM with one release" ;;
	esac
	get "$name" "$work/archive"
	want=$(sed -n "s/  $name\$//p" "$work/sums")
	[ "$(hash "$work/archive")" = "$want" ] || fail "$from/$name has not the hash that SHA256SUMS has: it is damaged, or was changed; nothing was installed"

	top=${name%.tar.gz}
	tar -xzf "$work/archive" -C "$work"
	new=$work/$top
	[ -d "$new" ] || fail "$name has no folder $top"
	"$new/bin/rnic" version >"$work/version" || fail "rnic of $name does not run on this machine: see above; nothing was installed"

	# What the list of an earlier installation does not have belongs to somebody else.
	(cd "$new" && find . ! -type d | sed 's,^\./,,' | sort) >"$work/files"
	echo share/softrnic/installed >>"$work/files"
	while read -r file; do
		if [ -e "$prefix/$file" ] || [ -h "$prefix/$file" ]; then
			grep -qxF "file $file" "$list" 2>/dev/null || fail "$prefix/$file is there and is not of install.sh; remove it, or choose another PREFIX"
		fi
	done <"$work/files"
	if [ -f "$list" ]; then
		cp "$list" "$work/old"
		remove "$work/old"
	fi

	# Folders that are made here go again, if they are empty then. The list comes first: what an interrupted run has put there can
	# be removed.
	: >"$work/folders"
	[ -d "$prefix" ] || echo "folder ." >>"$work/folders"
	(cd "$new" && find . -type d | sed -n 's,^\./,,p'; echo share; echo share/softrnic) | sort -u | while read -r dir; do
		[ -d "$prefix/$dir" ] || echo "folder $dir"
	done >>"$work/folders"
	mkdir -p "$prefix/share/softrnic"
	{
		sed 's/^/file /' "$work/files"
		sort -r "$work/folders"
	} >"$list"
	while read -r file; do
		[ "$file" != share/softrnic/installed ] || continue
		mkdir -p "$prefix/${file%/*}"
		cp -RPp "$new/$file" "$prefix/$file"
	done <"$work/files"

	echo "installed: $(cat "$work/version")"
	echo "below $prefix: bin/rnic, $([ $system = linux ] && echo "lib/softrnic, ")manual pages and completions in share; $list has each file"
	case :$PATH: in
	*":$prefix/bin:"*) echo "try:       rnic demo" ;;
	*)
		echo "try:       $prefix/bin/rnic demo"
		echo "           to leave out the folder: PATH=$prefix/bin:\$PATH, in ~/.profile for always"
		;;
	esac
	if [ "$prefix" = "$HOME/.local" ]; then
		echo "remove:    sh install.sh --uninstall"
	else
		echo "remove:    PREFIX=$prefix sh install.sh --uninstall"
	fi
}

[ $# -le 1 ] || usage
prefix=${PREFIX:-${HOME:?has to name your folder, or PREFIX another}/.local}
case $prefix in
*[[:space:]:]*) fail "the dynamic loader takes no libraries from a folder with spaces or colons in its name; choose another PREFIX than \"$prefix\"" ;;
/*) ;;
*) prefix=$PWD/$prefix ;;
esac
HOME=${HOME:-}
list=$prefix/share/softrnic/installed
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

case ${1:-} in
--uninstall) uninstall ;;
-*) usage ;;
"")
	from=$(dirname "$0")
	[ -f "$from/SHA256SUMS" ] || from=$releases
	install_it
	;;
*)
	from=${1%/}
	install_it
	;;
esac
