package file_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pkg/errors"
	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/file"
)

const manyMistakes = `version: 1
maxUnavailable: "120%"
maxUnavailabel: 2
soak: 5
retry: {base: 2h, max: 1h}
windows:
- schedule: at night
  duration: 0s
  timeZone: Nowhere
- schedul: 0 2 * * *
  duration: 1h
freezes: [{from: 2026-01-02T00:00:00Z, to: 2026-01-01T00:00:00Z}]
whenWindowCloses: finsh
drain:
  gracePeriod: 0s
  waitFor: [{}]
  leave: 5
groups:
- name: a
  nodeSelector: {matchExpressions: [{key: x, operator: in, values: [b]}, {key: y, operator: In}]}
  after: [c]
  maxLost: 1
  volumes:
    wait: -1s
- name: b
  soak: -1s
  soak: 1s
maxStaging: [1]
`

// Every mistake of a file is told at once, in the order of the lines, with its line, its field and the remedy.
func TestEveryMistakeAtOnce(t *testing.T) {
	_, err := decode(manyMistakes)
	assert.DeepEqual(t, file.Lines(err), []string{
		`line 2: maxUnavailable "120%" is more than all: give 0% to 100%`,
		`line 3: there is no field maxUnavailabel: the nearest is maxUnavailable`,
		`line 4: soak "5" is no duration: give one such as 90s, 30m or 4h`,
		`line 5: retry.max is 1h0m0s, less than retry.base, which is 2h0m0s: give the longer wait as max`,
		`line 7: windows[0].schedule "at night": it has 2 fields: give minute, hour, day of month, month and day of week`,
		`line 8: windows[0].duration is 0s: give more than 0 and at most 8784h0m0s`,
		`line 9: windows[0].timeZone is "Nowhere", which is not known: give an IANA name such as Europe/Berlin`,
		`line 10: there is no field windows[1].schedul: the nearest is schedule`,
		`line 12: freezes[0].to is 2026-01-01T00:00:00Z, not after from, which is 2026-01-02T00:00:00Z: give an end after the beginning`,
		`line 13: whenWindowCloses is "finsh": give finish or return; the nearest is finish`,
		`line 15: drain.gracePeriod is 0s, which would kill every pod at once: give 1s or more, or leave it out for each pod's own grace period`,
		`line 16: drain.waitFor[0] chooses every pod: give a namespace, or a podSelector that chooses some`,
		`line 17: drain.leave is "5": give a list`,
		`line 20: groups[0].nodeSelector.matchExpressions[0].operator is "in": give In, NotIn, Exists or DoesNotExist; the nearest is In`,
		`line 20: groups[0].nodeSelector.matchExpressions[1].values is missing: operator In needs values`,
		`line 21: groups[0].after[0] is "c", which is no group: name one of this file`,
		`line 22: there is no field groups[0].maxLost: it belongs to the policy itself, not to a part of it`,
		`line 24: groups[0].volumes.wait is -1s: give 0 or more`,
		`line 25: groups[1].nodeSelector is missing: give one; {} chooses every node`,
		`line 27: groups[1].soak is there already, in line 26: keep one of them`,
		`... (and 1 more mistake)`,
	})
}

// An error is one line, short enough for a node's message, and tells that there is more.
func TestMistakesInOneLine(t *testing.T) {
	_, err := decode(manyMistakes)
	assert.Error(t, err, `line 2: maxUnavailable "120%" is more than all: give 0% to 100% (and 20 more mistakes)`)
	_, err = decode("version: 1\nsoak: 5\n" + strings.Repeat("long", 200) + ": 1\n")
	assert.Error(t, err, `line 2: soak "5" is no duration: give one such as 90s, 30m or 4h (and 1 more mistake)`)
	_, err = decode("version: 1\n" + strings.Repeat("long", 200) + ": 1\nsoak: 5\n")
	assert.Assert(t, len(err.Error()) < 200, "%s", err)
	assert.Equal(t, len(file.Lines(err)[0]), len("line 2: ")+400, "a mistake that quotes much is cut")
	assert.Assert(t, strings.HasSuffix(err.Error(), " (and 1 more mistake)"), "%s", err)
	_, err = decode("version: 1\n\"so\\nak\": 1m\n")
	assert.Error(t, err, "line 2: there is no field so ak: the nearest is soak")
}

// Of very many mistakes the first are listed, and how many more there are.
func TestVeryManyMistakes(t *testing.T) {
	for count, last := range map[int]string{20: "line 21: there is no field x19: take it out", 21: "... (and 1 more mistake)", 1000: "... (and 980 more mistakes)"} {
		text := "version: 1\n"
		for i := range count {
			text += fmt.Sprintf("x%d: 1\n", i)
		}
		_, err := decode(text)
		lines := file.Lines(err)
		assert.Equal(t, len(lines), min(count, 21))
		assert.Equal(t, lines[len(lines)-1], last)
	}
	assert.DeepEqual(t, file.Lines(errors.New("the file is away")), []string{"the file is away"})
}

// What merely follows from a mistake is none: it goes when that does.
func TestNothingFollowsFromAMistake(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"a name that can't be read", "groups:\n- {name: [a], nodeSelector: {}}\n- {name: b, nodeSelector: {}, after: [a]}\n", "line 3: groups[0].name is a list: give a text"},
		{"a wait that can't be read", "retry: {base: 5, max: 1m}\n", `line 2: retry.base "5" is no duration: give one such as 90s, 30m or 4h`},
		{"a field that was meant and must be there", "pause: {raeson: x}\n", "line 2: there is no field pause.raeson: the nearest is reason"},
		{"a field that was meant", "drain: {leave: [{namespce: a}]}\n", "line 2: there is no field drain.leave[0].namespce: the nearest is namespace"},
		{"an element that is none", "windows: [5]\n", `line 2: windows[0] is "5": give a mapping`},
		{"what a group has from the fleet", "soak: -1s\ngroups: [{name: a, nodeSelector: {}}]\n", "line 2: soak is -1s: give 0 or more"},
		{"a range that can't be read", "versions: {hold: 1.27.0, allow: all}\n",
			`line 2: versions.allow "all" is no range of versions: give one such as ">=1.20.0 <2" or "1.27.x"`},
		{"what rests on another field", "drain: {timeout: -5m}\nloadBalancers: {wait: 5m}\n", "line 2: drain.timeout is -5m0s: give a duration such as 10m"},
		{"groups that wait for each other", "groups:\n- {name: a, nodeSelector: {}, after: [b]}\n- {name: b, nodeSelector: {}, after: [a]}\n",
			`line 3: groups[0].after leads from group "a" back to itself, by way of the groups that it comes after: nothing in it would ever start`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := decode("version: 1\n" + tc.text)
			assert.Error(t, err, tc.want)
		})
	}
	// But what a group says itself is its own mistake, also where the fleet makes the same.
	_, err := decode("version: 1\nsoak: -1s\ngroups: [{name: a, nodeSelector: {}, soak: -1s}]\n")
	assert.DeepEqual(t, file.Lines(err), []string{"line 2: soak is -1s: give 0 or more", "line 3: groups[0].soak is -1s: give 0 or more"})
}
