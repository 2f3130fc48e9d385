#!/bin/sh
# Copies this project's licence files, Go's own, and those of every module that a program links on any platform of a
# release, to the folder given: of the image's commands and of where its certificates come from, or of the packages
# given. Of a module those count that are in a linked package's folder or above it. A module without a licence file is
# an error: it could not be shipped.
set -eu

[ $# -ge 1 ] || { echo "usage: licences.sh FOLDER [PACKAGE...]" >&2; exit 2; }
out=$1
shift
platforms="linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64"
[ $# -gt 0 ] || {
	platforms="linux/amd64 linux/arm64"
	set -- ./cmd/bottlerocket-update-operator ./cmd/bottlerocket-update-agent ./dev/image/roots
}
mkdir -p "$out/std"
cp COPYRIGHT LICENSE-APACHE LICENSE-MIT "$out"
# What Go calls the module of its library.
cp "$(go env GOROOT)/LICENSE" "$out/std/"

# Into a variable first: a pipe would hide that go failed.
packages=
for platform in $platforms; do
	linked=$(CGO_ENABLED=0 GOOS=${platform%/*} GOARCH=${platform#*/} go list -deps \
		-f '{{$dir := .Dir}}{{with .Module}}{{if not .Main}}{{.Path}} {{.Dir}} {{$dir}}{{end}}{{end}}' "$@")
	packages="$packages
$linked"
done
echo "$packages" | awk 'NF { d = $3; while (d != $2) { print $1, $2, d; sub("/[^/]*$", "", d) } print $1, $2, d }' | sort -u |
while read -r module root dir; do
	for file in "$dir"/*; do
		case ${file##*/} in
		*.go) continue ;;
		[Ll][Ii][Cc][Ee][Nn][CcSs][Ee]* | [Cc][Oo][Pp][Yy][Ii][Nn][Gg]* | [Nn][Oo][Tt][Ii][Cc][Ee]*) [ -f "$file" ] || continue ;;
		*) continue ;;
		esac
		mkdir -p "$out/$module${dir#"$root"}"
		cp "$file" "$out/$module${dir#"$root"}/"
	done
	[ "$dir" != "$root" ] || [ -n "$(ls "$out/$module" 2>/dev/null)" ] || { echo "licences.sh: module $module has no licence file" >&2; exit 1; }
done
# Those of the module cache can't be written.
find "$out" -type f -exec chmod 644 {} +
