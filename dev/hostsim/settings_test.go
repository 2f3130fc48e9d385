package hostsim

import (
	"net/url"
	"testing"
	"time"

	"gotest.tools/v3/assert"
)

func (f *fixture) patch(tx, body string) Answer {
	return f.Handle(Request{
		Method: "PATCH", Path: "/settings", Query: url.Values{"tx": {tx}},
		ContentType: "application/json", Body: []byte(body),
	})
}

func TestSettingsQueries(t *testing.T) {
	f := exampleHost(t)
	f.isJSON("/settings?prefix=updates.version", `{"updates":{"version-lock":"latest"}}`)
	f.isJSON("/settings?prefix=motd", `{}`)
	f.isJSON("/settings?keys=settings.updates.version-lock,settings.updates.seed,settings.motd",
		`{"updates":{"seed":1487,"version-lock":"latest"}}`)
	f.isJSON("/settings?keys=updates.seed", `{}`)
	f.isJSON("/?prefix=settings.updates.seed", `{"settings":{"updates":{"seed":1487}}}`)
	for target, body := range map[string]string{
		"/settings?keys=":   "Input 'keys' cannot be empty",
		"/settings?prefix=": "Input 'prefix' cannot be empty",
		"/settings?keys=a!": "Unable to make data key 'a!': invalid character in key",
	} {
		a := f.do("GET", target)
		assert.Equal(t, a.Status, 400, target)
		assert.Equal(t, string(a.Body), body)
	}
}

func TestVersionLockThroughATransaction(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.Latencies.Settings = 2 * time.Second })
	assert.DeepEqual(t, f.patch("T", `{"updates":{"version-lock":"v1.26.0"}}`), Answer{Status: 204})
	// Staged only, and in that transaction only.
	f.isJSON("/settings?keys=settings.updates.version-lock", `{"updates":{"version-lock":"latest"}}`)
	a := f.do("POST", "/tx/commit_and_apply?tx=other")
	assert.Equal(t, a.Status, 422)
	assert.Equal(t, string(a.Body), "Tried to commit with no pending changes")
	a = f.do("POST", "/tx/commit_and_apply?tx=T")
	assert.Equal(t, a.Status, 200)
	assert.Equal(t, string(a.Body), `["settings.updates.version-lock"]`)
	f.isJSON("/settings?keys=settings.updates.version-lock", `{"updates":{"version-lock":"v1.26.0"}}`)
	assert.Equal(t, f.do("POST", "/tx/commit_and_apply?tx=T").Status, 422)
	// The updater's configuration follows later.
	f.accept(Refresh)
	assert.Equal(t, f.status().Chosen.Version, v1270)
	f.clock.Step(time.Second)
	f.accept(Refresh)
	assert.Equal(t, f.status().Chosen.Version, v1260)
	// And it survives a boot.
	f.Boot()
	f.accept(Refresh)
	assert.Equal(t, f.status().Chosen.Version, v1260)
}

func TestPatchSeveral(t *testing.T) {
	f := newFixture(t)
	assert.Equal(t, f.patch("", `{"updates":{"seed":7,"ignore-waves":true,"metadata-base-url":"m","targets-base-url":"t"}}`).Status, 204)
	a := f.do("POST", "/tx/commit_and_apply")
	assert.Equal(t, string(a.Body), `["settings.updates.ignore-waves","settings.updates.metadata-base-url","settings.updates.seed","settings.updates.targets-base-url"]`)
	assert.DeepEqual(t, f.Snapshot().Settings,
		Settings{VersionLock: "latest", IgnoreWaves: true, Seed: 7, MetadataBaseURL: "m", TargetsBaseURL: "t"})
}

func TestBadPatches(t *testing.T) {
	f := newFixture(t)
	for _, body := range []string{
		`{"updates":{"version-lock":"newest"}}`, `{"updates":{"version-lock":"1.2"}}`, `{"updates":{"version-lock":7}}`,
		`{"updates":{"seed":-1}}`, `{"updates":{"ignore-waves":"yes"}}`, `{"updates":{"colour":"red"}}`, `{"upd`, ``,
	} {
		a := f.patch("T", body)
		assert.Equal(t, a.Status, 400, body)
		assert.Assert(t, len(a.Body) > len("Json deserialize error: "), body)
		assert.Equal(t, string(a.Body[:24]), "Json deserialize error: ")
	}
	assert.Equal(t, f.patch("T", `{}`).Status, 204)
	assert.Equal(t, f.do("POST", "/tx/commit_and_apply?tx=T").Status, 422)
	assert.Equal(t, f.do("PATCH", "/settings?tx=T").Status, 400)
}

// Faults of the settings can be for one request of a change: the look, what is staged, or the commit.
func TestFaultsOfAChange(t *testing.T) {
	const lock = `{"updates":{"version-lock":"1.26.0"}}`
	commit := func(f *fixture, tx string) Answer { return f.do("POST", "/tx/commit_and_apply?tx="+tx) }
	standing := func(f *fixture, want string) {
		t.Helper()
		assert.Equal(t, f.Snapshot().Settings.VersionLock, want)
	}
	f := newFixture(t)
	f.faults(Fault{ID: F26, On: "/tx/commit_and_apply", Count: 1})
	assert.Equal(t, f.patch("T", lock).Status, 204)
	a := commit(f, "T")
	assert.Equal(t, a.Status, 500)
	assert.Equal(t, string(a.Body), "Data store error during commit: lockdown is in effect")
	standing(f, "latest")
	assert.Equal(t, commit(f, "T").Status, 200, "what was staged is still there")
	standing(f, "1.26.0")

	f = newFixture(t)
	f.faults(Fault{ID: F26, On: "PATCH /settings"})
	assert.Equal(t, f.do("GET", "/settings?prefix=updates").Status, 200)
	assert.Equal(t, f.patch("T", lock).Status, 500)

	// An answer that is lost: what was asked for is done.
	f = newFixture(t)
	f.faults(Fault{ID: F12, Variant: "truncated", On: "PATCH /settings"}, Fault{ID: F12, Variant: "truncated", On: "/tx/commit_and_apply"})
	assert.Equal(t, f.do("GET", "/settings?prefix=updates").Cut, CutNone)
	assert.Equal(t, f.patch("T", lock).Cut, CutBody)
	assert.Equal(t, commit(f, "T").Cut, CutBody)
	standing(f, "1.26.0")

	// A request that came too late: it is not.
	f = newFixture(t)
	f.faults(Fault{ID: F32, On: "PATCH /settings", Count: 1})
	assert.Equal(t, f.patch("T", lock).Status, 408)
	assert.Equal(t, commit(f, "T").Status, 422)
	standing(f, "latest")
}

// What one program stages, another neither commits nor loses.
func TestTransactionsAreApart(t *testing.T) {
	f := newFixture(t)
	assert.Equal(t, f.patch("", `{"updates":{"seed":7}}`).Status, 204)
	assert.Equal(t, f.patch("theirs", `{"updates":{"version-lock":"1.26.1"}}`).Status, 204)
	assert.Equal(t, f.patch("ours", `{"updates":{"version-lock":"1.26.0"}}`).Status, 204)
	assert.Equal(t, string(f.do("POST", "/tx/commit_and_apply?tx=ours").Body), `["settings.updates.version-lock"]`)
	s := f.Snapshot().Settings
	assert.Assert(t, s.VersionLock == "1.26.0" && s.Seed == 0, "%+v", s)
	assert.Equal(t, f.do("POST", "/tx/commit_and_apply").Status, 200)
	assert.Equal(t, f.do("POST", "/tx/commit_and_apply?tx=theirs").Status, 200)
	s = f.Snapshot().Settings
	assert.Assert(t, s.VersionLock == "1.26.1" && s.Seed == 7, "%+v", s)
}
