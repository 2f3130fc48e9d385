#!/bin/sh
# Runs every fuzz target of pkg, or those that are named, for the time given, one after the other, and ends at
# the first finding.
# go test keeps a finding's input in testdata/fuzz beside the target, where every go test tries it again.
set -eu

[ $# -ge 1 ] && [ $# -le 3 ] || { echo "usage: fuzz.sh TIME [TARGET [PACKAGE]]" >&2; exit 2; }
time=$1
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Names come first, then the line of their package.
listed=$(go test -list "^${2:-Fuzz}" "${3:-./pkg/...}")
targets=$(echo "$listed" | awk '/^Fuzz/ {name[++n] = $1} /^ok / {for (i = 1; i <= n; i++) print $2, name[i]; n = 0}')
[ -n "$targets" ] || { echo "fuzz.sh: there is no target" >&2; exit 1; }

count=0
executions=0
began=$(date +%s)
while read -r package name; do
	status=0
	go test -run '^$' -fuzz "^$name\$" -fuzztime "$time" -timeout 0 "$package" >"$log" 2>&1 || status=$?
	# Before Go 1.27, go test itself fails now and then when the time is up (go.dev/issue/75804).
	if [ "$status" -ne 0 ] && { grep -q 'Failing input' "$log" || ! grep -q '^ *context deadline exceeded$' "$log"; }; then
		cat "$log" >&2
		echo "fuzz.sh: $name of $package found something" >&2
		exit 1
	fi
	ran=$(sed -n 's/.* execs: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
	printf '%-20s %s: %s executions\n' "$name" "${package#*/bottlerocket-update-operator/}" "${ran:-0}"
	count=$((count + 1))
	executions=$((executions + ${ran:-0}))
done <<EOF
$targets
EOF
echo "fuzz: $count targets, $time each, $executions executions in $(($(date +%s) - began)) seconds, no finding"
