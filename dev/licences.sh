#!/bin/sh
# Copies this project's licence files, and those of every module that the image holds something of, to the
# folder given: what the two commands link on any platform, and where the certificates come from. Such a
# module without a licence file is an error: it could not be shipped.
set -eu

[ $# -eq 1 ] || { echo "usage: licences.sh FOLDER" >&2; exit 2; }
out=$1
mkdir -p "$out"
cp COPYRIGHT LICENSE-APACHE LICENSE-MIT "$out"

# Into a variable first: a pipe would hide that go failed.
modules=
for arch in amd64 arm64; do
	linked=$(CGO_ENABLED=0 GOOS=linux GOARCH=$arch go list -deps \
		-f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Dir}}{{end}}{{end}}' \
		./cmd/bottlerocket-update-operator ./cmd/bottlerocket-update-agent ./dev/image/roots)
	modules="$modules
$linked"
done
echo "$modules" | sort -u | while read -r path dir; do
	[ -n "$path" ] || continue
	files=$(find "$dir" -maxdepth 1 -type f \( -iname 'licen[cs]e*' -o -iname 'copying*' -o -iname 'notice*' \) ! -name '*.go')
	[ -n "$files" ] || { echo "licences.sh: module $path has no licence file" >&2; exit 1; }
	mkdir -p "$out/$path"
	for file in $files; do
		cp "$file" "$out/$path/"
		chmod 644 "$out/$path/${file##*/}"
	done
done
