#!/bin/sh
# Runs everything that docs/safety.md rests on, one part after the other, whatever fails, and prints one page with a
# verdict on each. ONLY names the parts to run; SHORT=1 makes each as short as it gets, to try this script.
set -u

cd "$(dirname "$0")/.." || exit 1
out=bin/evidence
mkdir -p "$out"
# SHORT is make e2e's too.
short=${SHORT:-}
unset SHORT MAKEFLAGS
by() { if [ -n "$short" ]; then echo "$2"; else echo "$1"; fi; }

page=$out/page.txt
{
	echo "Evidence of $(git describe --tags --always --dirty 2>/dev/null || echo unknown) on $(date -u +%F), $(getconf _NPROCESSORS_ONLN) cores${short:+, as short as it gets}"
	echo
} >"$page"
status=0

wanted() { case " ${ONLY:-$1} " in *" $1 "*) ;; *) return 1 ;; esac; }

# part NAME SHOWS LINES FIGURES COMMAND...: of the lines with the pattern FIGURES the last LINES go to the page.
part() {
	name=$1 shows=$2 lines=$3 figures=$4
	shift 4
	wanted "$name" || return
	echo "==> $name: $*"
	began=$(date +%s)
	verdict=pass
	"$@" >"$out/$name.log" 2>&1 || { verdict=FAIL status=1; }
	{
		printf '%-9s %-10s %6d s  %s\n' "$verdict" "$name" $(($(date +%s) - began)) "$shows"
		{
			grep -E "$figures" "$out/$name.log" | tail -n "$lines"
			grep -E '^ *--- FAIL|^FAIL|^make.*Error' "$out/$name.log" | head -n 10
		} | sed 's/^ */    /'
	} >>"$page"
}

part check 'format, vet, linters, manifest, shape of the code' 0 . make check
part test 'all tests of each change' 0 . make test
part race 'no data race in any package' 3 '^WARNING: DATA RACE' \
	go test -race -timeout 0 -p 1 $(by "$(go list ./... | grep -v /dev/e2e)" ./pkg/plan)
part planted 'each planted bug and hole is found' 2 '^[0-9]+ of [0-9]+ bugs' make planted BUGS=$(by all after-ignored,admission-forged)
part small 'small fleets, explored to the last state' 9 '^nodes=' go test -count=1 -timeout 0 -v -run TestSmallFleets $(by '' -short) ./dev/sim/model -args $(by -all '')
part model 'three nodes, as far as time and memory allow' 4 '^nodes=' make model MINUTES=$(by 30 0.05)
part sim 'no simulated rollout breaks a promise' 5 '^[0-9]+ seeds|breaks|never struck' make sim SEEDS=$(by 100000 1000)
part pins 'hosts are locked to a version and have back what they had' 1 '^--- ' go test -count=1 -timeout 0 -v -run TestPinnedHosts ./dev/simcluster $(by '-args -full' '')
part chaos 'no promise is broken on a real control plane' 1 '^seeds' make chaos $(by MINUTES=60 TIMES=1)
part fuzz 'nothing outside can break what decodes it' 1 '^fuzz' make fuzz FUZZTIME=$(by 5m 1s)
part mutants 'the unit tests of the pure packages notice changes' 1 'noticed' make mutants $(by '' 'N=3 IN=pkg/marker')
part dist 'a release is the same each time it is made' 22 '^ *[0-9a-f]{64}  ' make dist-test $(by '' SHORT=1)
part sign 'what is signed is verified, and all else refused' 0 . make sign-test
if lacks=$(go run ./dev/realcluster/cmd 2>&1); then
	part e2e 'the product on real nodes' 20 '^--- ' make e2e $(by '' SHORT=1)
elif wanted e2e; then
	printf '%-9s %-10s %8s  %s\n' 'left out' e2e '' "$(echo "$lacks" | head -n 1)" >>"$page"
fi

echo
cat "$page"
exit $status
