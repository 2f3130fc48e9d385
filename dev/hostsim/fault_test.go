package hostsim

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"gotest.tools/v3/assert"
)

func TestFaultsAsJSON(t *testing.T) {
	in := `[{"id":"F4","variant":"target","count":2,"delay":"1m30s"},{"id":"F15","variant":"delay","until":"2026-09-20T11:00:00Z"}]`
	faults, err := ParseFaults([]byte(in))
	assert.NilError(t, err)
	assert.DeepEqual(t, faults, []Fault{
		{ID: F4, Variant: "target", Count: 2, Delay: Duration(90 * time.Second)},
		{ID: F15, Variant: "delay", Until: time.Date(2026, 9, 20, 11, 0, 0, 0, time.UTC)},
	})
	out, err := json.Marshal(faults)
	assert.NilError(t, err)
	assert.Equal(t, string(out), in)
}

func TestBadFaults(t *testing.T) {
	for in, want := range map[string]string{
		`[{"id":"F36"}]`:                    `unknown fault "F36"`,
		`[{"id":""}]`:                       `unknown fault ""`,
		`[{}]`:                              `unknown fault ""`,
		`[{"id":"F4","kind":"target"}]`:     "unknown field",
		`[{"id":"F4","variant":"nope"}]`:    "has no variant",
		`[{"id":"F3","variant":"nope"}]`:    "has no variant",
		`[{"id":"F4","count":-1}]`:          "negative",
		`[{"id":"F2","count":1}]`:           "takes no count",
		`[{"id":"F3","delay":"-1s"}]`:       "negative",
		`[{"id":"F3","delay":"soon"}]`:      "parse duration",
		`[{"id":"F3","version":"1.0.0"}]`:   "takes no version",
		`[{"id":"F9"}]`:                     "needs a version",
		`[{"id":"F9","version":"v1"}]`:      "version",
		`[{"id":"F2","version":"1.0.0"}]`:   "needs the command prepare",
		`[{"id":"F3","command":"refresh"}]`: "takes no command",
		`[{"id":"F10","command":"reboot"}]`: "unknown command",
		`[{"id":"F3","on":"/os"}]`:          "takes no path",
		`[{"id":"F13","on":"/settings"}]`:   "isn't for path",
		`[{"id":"F24"}]`:                    "withdraw the release",
		`{"id":"F3"}`:                       "parse faults",
	} {
		_, err := ParseFaults([]byte(in))
		assert.ErrorContains(t, err, want, in)
	}
	f := newFixture(t)
	assert.ErrorContains(t, f.SetFaults(Fault{ID: "F99"}), "unknown fault")
	assert.ErrorContains(t, f.AddFault(Fault{ID: F11}), "close and serve again")
}

// Every listed fault has its traits, and can either be set or says how to get it.
func TestFaultListIsWhole(t *testing.T) {
	for n := 1; n <= 35; n++ {
		f := Fault{ID: FaultID("F" + strconv.Itoa(n))}
		if f.ID == F9 {
			f.Version = v1260
		}
		if err := f.check(); err != nil {
			assert.ErrorContains(t, err, "isn't set on a host: ")
		}
	}
	assert.Equal(t, len(traits), 35)
}

func TestFaultsCountAndEnd(t *testing.T) {
	f := newFixture(t)
	f.faults(Fault{ID: F3, Count: 2})
	for _, want := range []string{"Failed", "Failed", "Success"} {
		f.accept(Refresh)
		assert.Equal(t, f.status().Last.Status, want)
	}
	assert.Equal(t, len(f.Faults()), 0)
	assert.NilError(t, f.AddFault(Fault{ID: F3, Until: f.clock.Now().Add(time.Second)}))
	for _, want := range []string{"Failed", "Success"} {
		f.accept(Refresh)
		assert.Equal(t, f.status().Last.Status, want)
	}
	assert.Equal(t, len(f.Faults()), 0)
}
