#!/usr/bin/env bash
# Puts the version of verbs/version.go where else it has to be, and checks a release.
#   release.sh stamp  last before the release's commit, when all else is as it shall be: go.work, and the go.mod and
#                     go.sum of the nested modules
#   release.sh check  of the last commit, in a clone of it: all is stamped, and what users get from it works
# `check` ends with the commands that publish; `make release` builds the files.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go} module=github.com/softrnic/softrnic
version=v$(sed -n 's/^const release = "\(.*\)"$/\1/p' verbs/version.go)
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[a-z0-9.]+)?$ ]] || { echo "release: verbs/version.go has no version" >&2; exit 1; }

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

# nested: the folders of the modules below the root.
nested() { "$go" list -m -f '{{.Path}}' | sed -n "s,^$module/,,p"; }

# proxied COMMAND...: with the modules as they would be published, and no go.work.
proxied() {
  env GOPROXY="file://$place/proxy,$("$go" env GOPROXY)" GONOSUMDB="$module,$module/*" GOWORK=off \
    GOMODCACHE="$place/cache" GOFLAGS=-modcacherw "$@"
}

stamp() {
  local dir
  if [[ -n $(git ls-files --others --exclude-standard) ]]; then
    echo "release: files that git does not know would be in the modules: commit or remove them" >&2
    exit 1
  fi
  sed -i "s,^\(replace $module\) v[^ ]*,\1 $version," go.work
  for dir in $(nested); do
    (cd "$dir" && GOWORK=off "$go" mod edit -require "$module@$version")
  done
  # The nested modules are in no archive of the root, so their go.sum can have its hash.
  "$go" run ./internal/test/modproxy "$version" "$place/proxy"
  for dir in $(nested); do
    sed -i "\,^$module v,d" "$dir/go.sum"
    (cd "$dir" && proxied "$go" mod tidy)
  done
  git --no-pager diff --stat
}

check() {
  local dir tags=$version
  git clone --quiet --no-local . "$place/clone"
  cd "$place/clone"
  grep -q "^## ${version#v}\$" CHANGELOG.md || { echo "release: CHANGELOG.md has no section ${version#v}" >&2; exit 1; }
  "$go" test -count=1 ./internal/test/modproxy
  "$go" run ./internal/test/modproxy "$version" "$place/proxy"
  for dir in $(nested); do
    tags+=" $dir/$version"
    # With the go.sum that is in the commit: it has to have the root's hash.
    (cd "$dir" && proxied "$go" build -mod=readonly ./... && proxied "$go" mod verify)
  done
  echo "release: $version can be published:"
  echo "for t in $tags; do git tag -a -m \"\$t\" \"\$t\"; done && git push origin $tags"
}

case ${1:-} in
stamp) stamp ;;
check) check ;;
*)
  sed -n '2,/^set/{/^# /s/^# //p}' "$0" >&2
  exit 2
  ;;
esac
