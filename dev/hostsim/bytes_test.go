package hostsim

import (
	"testing"

	"gotest.tools/v3/assert"
)

// The answers of docs/host-api.md#status, byte for byte.
const (
	exampleOS        = `{"arch":"x86_64","build_id":"943d9a41","pretty_name":"Bottlerocket OS 1.26.1 (aws-k8s-1.31)","variant_id":"aws-k8s-1.31","version_id":"1.26.1"}`
	exampleFresh     = `{"update_state":"Idle","available_updates":[],"chosen_update":null,"active_partition":{"image":{"arch":"x86_64","version":"1.26.1","variant":"aws-k8s-1.31"},"next_to_boot":true},"staging_partition":null,"most_recent_command":null}`
	exampleIdle      = `{"update_state":"Idle","available_updates":["1.26.1","1.26.0","1.25.0"],"chosen_update":null,"active_partition":{"image":{"arch":"x86_64","version":"1.26.1","variant":"aws-k8s-1.31"},"next_to_boot":true},"staging_partition":null,"most_recent_command":{"cmd_type":"refresh","cmd_status":"Success","timestamp":"2026-09-20T10:00:02.802253160Z","exit_status":0,"stderr":""}}`
	exampleAvailable = `{"update_state":"Available","available_updates":["1.27.0","1.26.1","1.26.0"],"chosen_update":{"arch":"x86_64","version":"1.27.0","variant":"aws-k8s-1.31"},"active_partition":{"image":{"arch":"x86_64","version":"1.26.1","variant":"aws-k8s-1.31"},"next_to_boot":true},"staging_partition":null,"most_recent_command":{"cmd_type":"refresh","cmd_status":"Success","timestamp":"2026-09-20T10:05:02.141433622Z","exit_status":0,"stderr":""}}`
	exampleStaged    = `{"update_state":"Staged","available_updates":["1.27.0","1.26.1","1.26.0"],"chosen_update":{"arch":"x86_64","version":"1.27.0","variant":"aws-k8s-1.31"},"active_partition":{"image":{"arch":"x86_64","version":"1.26.1","variant":"aws-k8s-1.31"},"next_to_boot":true},"staging_partition":{"image":{"arch":"x86_64","version":"1.27.0","variant":"aws-k8s-1.31"},"next_to_boot":false},"most_recent_command":{"cmd_type":"prepare","cmd_status":"Success","timestamp":"2026-09-20T10:08:58.766493367Z","exit_status":0,"stderr":"Starting update to 1.27.0\n"}}`
	exampleReady     = `{"update_state":"Ready","available_updates":["1.27.0","1.26.1","1.26.0"],"chosen_update":{"arch":"x86_64","version":"1.27.0","variant":"aws-k8s-1.31"},"active_partition":{"image":{"arch":"x86_64","version":"1.26.1","variant":"aws-k8s-1.31"},"next_to_boot":false},"staging_partition":{"image":{"arch":"x86_64","version":"1.27.0","variant":"aws-k8s-1.31"},"next_to_boot":true},"most_recent_command":{"cmd_type":"activate","cmd_status":"Success","timestamp":"2026-09-20T10:09:19.903337270Z","exit_status":0,"stderr":""}}`
	exampleFailed    = `{"update_state":"Idle","available_updates":[],"chosen_update":null,"active_partition":{"image":{"arch":"x86_64","version":"1.26.1","variant":"aws-k8s-1.31"},"next_to_boot":true},"staging_partition":null,"most_recent_command":{"cmd_type":"refresh","cmd_status":"Failed","timestamp":"2026-09-20T10:10:47.856794834Z","exit_status":1,"stderr":"Metadata error: Failed to fetch https://updates.bottlerocket.aws/2020-07-07/aws-k8s-1.31/x86_64/timestamp.json: error sending request\n"}}`
	exampleSettings  = `{"updates":{"ignore-waves":false,"metadata-base-url":"https://updates.bottlerocket.aws/2020-07-07/aws-k8s-1.31/x86_64/","seed":1487,"targets-base-url":"https://updates.bottlerocket.aws/targets/","version-lock":"latest"}}`
)

func exampleHost(t *testing.T) *fixture {
	t.Helper()
	return newFixture(t, func(c *Config) {
		c.Settings.Seed = 1487
		c.BuildID = func(string) string { return "943d9a41" }
	})
}

func (f *fixture) isJSON(target, want string) {
	f.t.Helper()
	a := f.do("GET", target)
	assert.Equal(f.t, a.Status, 200)
	assert.Equal(f.t, a.ContentType, "application/json")
	assert.Equal(f.t, string(a.Body), want)
}

func TestExampleBytes(t *testing.T) {
	f := exampleHost(t)
	f.isJSON(pathOS, exampleOS)
	assert.Equal(t, f.post(Prepare).Status, 409)
	f.isJSON(pathStatus, exampleFresh)
	for _, step := range []struct {
		at      string
		command Command
		want    string
	}{
		{"2026-09-20T10:05:02.141433622Z", Refresh, exampleAvailable},
		{"2026-09-20T10:08:58.766493367Z", Prepare, exampleStaged},
		{"2026-09-20T10:09:19.903337270Z", Activate, exampleReady},
	} {
		f.at(step.at)
		f.accept(step.command)
		f.isJSON(pathStatus, step.want)
	}
	f.isJSON("/settings?prefix=updates", exampleSettings)
}

func TestExampleIdleBytes(t *testing.T) {
	f := exampleHost(t)
	f.repo.Withdraw(variant, arch, v1270)
	f.release("1.25.0")
	f.at("2026-09-20T10:00:02.802253160Z")
	f.accept(Refresh)
	f.isJSON(pathStatus, exampleIdle)
}

func TestExampleFailedRefreshBytes(t *testing.T) {
	f := exampleHost(t)
	f.faults(Fault{ID: F3})
	f.at("2026-09-20T10:10:47.856794834Z")
	f.accept(Refresh)
	f.isJSON(pathStatus, exampleFailed)
}

func TestTimestampFractions(t *testing.T) {
	for _, s := range []string{
		"2026-09-20T10:00:02Z", "2026-09-20T10:00:02.100Z", "2026-09-20T10:00:02.000100Z", "2026-09-20T10:00:02.000000100Z",
	} {
		assert.Equal(t, timestamp(instant(t, s)), s)
	}
}

func TestOSPrefix(t *testing.T) {
	f := exampleHost(t)
	f.isJSON("/os?prefix=version", `{"version_id":"1.26.1"}`)
	f.isJSON("/os?prefix=v", `{"variant_id":"aws-k8s-1.31","version_id":"1.26.1"}`)
	f.isJSON("/os?prefix=x", `{}`)
	a := f.do("GET", "/os?prefix=")
	assert.Equal(t, a.Status, 400)
	assert.Equal(t, string(a.Body), "Input 'prefix' cannot be empty")
}

func TestUnknownRoutesAndMethods(t *testing.T) {
	f := newFixture(t)
	for _, r := range [][2]string{
		{"GET", "/updates"}, {"POST", pathStatus}, {"DELETE", pathOS}, {"GET", pathReboot},
		{"GET", "/actions/refresh-updates"}, {"POST", "/actions/update"}, {"PUT", "/settings"}, {"GET", "/v1/os"},
	} {
		assert.DeepEqual(t, f.do(r[0], r[1]), Answer{Status: 404})
	}
	log := f.Requests()
	assert.Equal(t, len(log), 8)
	assert.DeepEqual(t, log[0], LoggedRequest{Time: f.clock.Now(), Method: "GET", Path: "/updates", Status: 404})
}

func TestRequestLogIsBounded(t *testing.T) {
	f := newFixture(t)
	for range maxLogged + 1 {
		f.do("GET", pathOS)
	}
	assert.Equal(t, len(f.Requests()), maxLogged/2+1)
}
