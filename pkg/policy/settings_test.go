package policy_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/window"
)

type odd struct{ version string }

func (o odd) Contains(version string) bool { return version == o.version }
func (o odd) String() string               { return o.version }

// Each value that can't be meant is one mistake, told with the field, and with those that it rests on too.
func TestSettings(t *testing.T) {
	assert.NilError(t, policy.DefaultSettings().Validate())
	groups := func(g ...policy.Group) func(*policy.Settings) {
		return func(s *policy.Settings) {
			for _, g := range g {
				g.Rules = s.Rules
				s.Groups = append(s.Groups, g)
			}
		}
	}
	hook := func(change func(*policy.Hook)) func(*policy.Settings) {
		return func(s *policy.Settings) {
			h := policy.Hook{Name: "h", Annotation: "example.com/h", Timeout: time.Minute}
			change(&h)
			s.Hooks.BeforeUncordon = []policy.Hook{h}
		}
	}
	for _, tc := range []struct {
		name   string
		change func(*policy.Settings)
		want   string
		beside []string
	}{
		{"no node may stage", func(s *policy.Settings) { s.MaxStaging = 0 }, "maxStaging is 0", nil},
		{"others that were never there", func(s *policy.Settings) { s.IgnoreAfter = -1 }, "ignoreAfter is -1ns", nil},
		{"no word for the ungrouped", func(s *policy.Settings) { s.Ungrouped = "stay" }, `ungrouped is "stay": give go or wait`, nil},
		{"no word for the only node", func(s *policy.Settings) { s.SingleNode = "" }, `singleNode is "": give never or allow`, nil},
		{"no version may fail anywhere", func(s *policy.Settings) { s.MaxFailed = policy.Percent(0) }, "maxFailed is 0", nil},
		{"no time for a drain", func(s *policy.Settings) { s.Drain = 0 }, "drain.timeout is 0s", nil},
		{"a wait back in time", func(s *policy.Settings) { s.Balancers.Wait = -1 }, "loadBalancers.wait is -1ns", []string{"drain.timeout"}},
		{"a wait for all of the shortest drain", func(s *policy.Settings) { s.Drain, s.Balancers.Wait = 1, 1 }, "loadBalancers.wait is 1ns", []string{"drain.timeout"}},
		{"a wait for all of the drain", func(s *policy.Settings) { s.Balancers.Wait = s.Drain }, "loadBalancers.wait is 30m0s", []string{"drain.timeout"}},
		{"volumes back in time", func(s *policy.Settings) { s.Volumes.Wait = -1 }, "volumes.wait is -1ns", nil},
		{"a grace that kubelets don't know", func(s *policy.Settings) { s.Eviction.GracePeriod = time.Second - 1 }, "drain.gracePeriod is 999.999999ms", nil},
		{"a grace back in time", func(s *policy.Settings) { s.Eviction.GracePeriod = -1 }, "drain.gracePeriod is -1ns", nil},
		{"no pod may be evicted", func(s *policy.Settings) { s.Eviction.PerHour = 0 }, "drain.evictionsPerHour is 0", nil},
		{"a wait for every pod", func(s *policy.Settings) { s.Eviction.WaitFor = []policy.PodSelector{{}} }, "drain.waitFor[0] chooses every pod", nil},
		{"no time to verify", func(s *policy.Settings) { s.Verify.Deadline = 0 }, "verify.deadline is 0s", nil},
		{"a hook without a name", hook(func(h *policy.Hook) { h.Name = "" }), "hooks.beforeUncordon[0].name is missing", nil},
		{"a hook's annotation without a domain", hook(func(h *policy.Hook) { h.Annotation = "/h" }), "hooks.beforeUncordon[0].annotation", nil},
		{"a hook's annotation without a name", hook(func(h *policy.Hook) { h.Annotation = "example.com/" }), "hooks.beforeUncordon[0].annotation", nil},
		{"a hook's annotation with a long domain", hook(func(h *policy.Hook) { h.Annotation = strings.Repeat("e", 254) + "/h" }), "hooks.beforeUncordon[0].annotation", nil},
		{"a hook's annotation with a long name", hook(func(h *policy.Hook) { h.Annotation = "e/" + strings.Repeat("h", 64) }), "hooks.beforeUncordon[0].annotation", nil},
		{"a hook's annotation with a capital in its domain", hook(func(h *policy.Hook) { h.Annotation = "Example.com/h" }), "hooks.beforeUncordon[0].annotation", nil},
		{"a hook's annotation with a second slash", hook(func(h *policy.Hook) { h.Annotation = "example.com/h/h" }), "hooks.beforeUncordon[0].annotation", nil},
		{"a hook's annotation that is ours", hook(func(h *policy.Hook) { h.Annotation = "bottlerocket.aws/h" }), "hooks.beforeUncordon[0].annotation", nil},
		{"an alert without a Prometheus, by its query", func(s *policy.Settings) { s.Alerts.Query = "up" }, "alerts.url is missing", nil},
		{"an alert without a Prometheus, by what is ignored", func(s *policy.Settings) { s.Alerts.Ignore = []*regexp.Regexp{nil} }, "alerts.url is missing", nil},
		{"an alert without a Prometheus, by what counts", func(s *policy.Settings) { s.Alerts.FiringOnly = true }, "alerts.url is missing", nil},
		{"a cluster's name and no receiver", func(s *policy.Settings) { s.Notify.Cluster = "a" }, "notify.urlKey is missing", nil},
		{"a URL in place of its key", func(s *policy.Settings) { s.Notify.URLKey = "https://example.com/hook" }, "not the URL itself", nil},
		{"a way out of the Secret", func(s *policy.Settings) { s.Notify.URLKey = "..data" }, "notify.urlKey is", nil},
		{"a long name of a cluster", func(s *policy.Settings) { s.Notify.URLKey, s.Notify.Cluster = "a", strings.Repeat("a", 101) }, "longer than 100 bytes", nil},
		{"an occasion that is none", func(s *policy.Settings) { s.Notify.URLKey, s.Notify.Occasions = "a", []policy.Occasion{"Boot"} }, `notify.occasions[0] is "Boot"`, nil},
		{"a Prometheus without a scheme", func(s *policy.Settings) { s.Alerts.URL = "prometheus" }, `alerts.url is "prometheus"`, nil},
		{"a version to hold that isn't one", func(s *policy.Settings) { s.Versions.Hold = "latest" }, `versions.hold is "latest"`, nil},
		{"a version to hold that is denied", func(s *policy.Settings) { s.Versions.Hold, s.Versions.Deny = "1.2.3", odd{"1.2.3"} }, "versions.hold is 1.2.3, which versions.deny", []string{"versions.deny"}},
		{"a version to hold that isn't allowed", func(s *policy.Settings) { s.Versions.Hold, s.Versions.Allow = "1.2.3", odd{"1.2.4"} }, "versions.hold is 1.2.3, which versions.allow", []string{"versions.allow"}},
		{"a version to pin that isn't one", func(s *policy.Settings) { s.Versions.Pin = "latest" }, `versions.pin is "latest"`, nil},
		{"a version to pin that is denied", func(s *policy.Settings) { s.Versions.Pin, s.Versions.Deny = "1.2.3", odd{"1.2.3"} }, "versions.pin is 1.2.3, which versions.deny", []string{"versions.deny"}},
		{"a pin beside a hold", func(s *policy.Settings) { s.Versions.Pin, s.Versions.Hold = "1.2.3", "1.2.4" }, "versions.pin is 1.2.3 beside versions.hold, which is 1.2.4: give one of them", []string{"versions.hold"}},
		{"an age back in time", func(s *policy.Settings) { s.Versions.MinAge = -1 }, "versions.minAge is -1ns", nil},
		{"a group without a name", groups(policy.Group{}), "groups[0].name is missing", nil},
		{"two groups of one name", groups(policy.Group{Name: "a"}, policy.Group{Name: "a"}), `groups[1].name is "a", as is groups[0].name`, nil},
		{"a group after one that isn't there", groups(policy.Group{Name: "first"}, policy.Group{Name: "a", After: []string{"first", "fisrt"}}),
			`groups[1].after[1] is "fisrt", which is no group: name one of this file; the nearest is first`, []string{"groups[0].name", "groups[1].name"}},
		{"a group's soak back in time", groups(policy.Group{Name: "a", AfterSoak: -1}), "groups[0].afterSoak is -1ns", nil},
		{"a group's wait", func(s *policy.Settings) {
			groups(policy.Group{Name: "a"})(s)
			s.Groups[0].Balancers.Wait = -1
		}, "groups[0].loadBalancers.wait", []string{"groups[0].drain.timeout"}},
		{"groups that wait for each other", groups(policy.Group{Name: "a", After: []string{"b"}}, policy.Group{Name: "b", After: []string{"a"}}),
			`groups[0].after leads from group "a" back to itself`, nil},
		{"a soak back in time", func(s *policy.Settings) { s.Soak = -1 }, "soak is -1ns", nil},
		{"a window that never opens", func(s *policy.Settings) { s.Calendar.Windows = []window.Window{{}} }, "windows[0].duration is 0s: give more than 0", nil},
		{"a freeze without an end", func(s *policy.Settings) { s.Calendar.Freezes = []window.Freeze{{}} }, "freezes[0].to is 0001-01-01T00:00:00Z, not after from", nil},
		{"no deadline to prepare", func(s *policy.Settings) { s.Deadlines.Staging = 0 }, "deadlines.staging is 0s", nil},
		{"no deadline to reboot", func(s *policy.Settings) { s.Deadlines.Reboot = -1 }, "deadlines.reboot is -1ns", nil},
		{"no deadline to return", func(s *policy.Settings) { s.Deadlines.Return = 0 }, "deadlines.return is 0s", nil},
		{"no wait after a failure", func(s *policy.Settings) { s.RetryBase = 0 }, "retry.base is 0s", nil},
		{"waits that shrink", func(s *policy.Settings) { s.RetryMax = s.RetryBase - 1 }, "retry.max is 9m59.999999999s, less than retry.base", []string{"retry.base"}},
		{"a pause after an uncordon that is negative", func(s *policy.Settings) { s.PauseAfterUncordon = -1 }, "pauseAfterUncordon is -1ns", nil},
		{"a value of any length", func(s *policy.Settings) { s.Ungrouped = policy.Ungrouped(strings.Repeat("x", 999)) }, `ungrouped is "xxx`, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := policy.DefaultSettings()
			tc.change(&s)
			assert.ErrorContains(t, s.Validate(), tc.want)
			found := s.Mistakes()
			assert.Equal(t, len(found), 1, "%v", found)
			assert.Assert(t, slices.Equal(found[0].Beside, tc.beside), "%q", found[0].Beside)
			assert.Assert(t, len(found[0].Says) <= 400)
		})
	}
}

// What is just possible is no mistake.
func TestSettingsAtTheirEdges(t *testing.T) {
	s := policy.DefaultSettings()
	s.MaxStaging, s.IgnoreAfter, s.Ungrouped, s.SingleNode, s.MaxFailed = 1, 0, policy.UngroupedWait, policy.SingleNodeAllow, policy.Percent(1)
	s.Deadlines = policy.Deadlines{Staging: 1, Reboot: 1, Return: 1}
	s.RetryMax, s.PauseAfterUncordon, s.Soak, s.Drain = s.RetryBase, 0, 0, time.Minute
	s.Balancers.Wait, s.Volumes.Wait, s.Verify.Deadline = time.Minute-1, 0, 1
	s.Eviction.GracePeriod, s.Eviction.PerHour = time.Second, 1
	s.Eviction.Leave = []policy.PodSelector{{Namespace: "a"}, {Selector: policy.Selector{{Key: "b", Operator: policy.Exists}}}}
	s.Hooks.AfterDrain = []policy.Hook{{Name: "h", Annotation: strings.Repeat("e", 253) + "/" + strings.Repeat("Z", 63), Timeout: 1}}
	s.Hooks.BeforeUncordon = []policy.Hook{{Name: "h", Annotation: "0-.z/9_.-", Timeout: 1}}
	s.Topology = []policy.Topology{{Key: "zone", MaxDomains: 0}}
	s.Versions = policy.HostVersions{Hold: "1.2.3", Versions: policy.Versions{Allow: odd{"1.2.3"}, Deny: odd{"1.2.4"}}}
	for _, url := range []string{"http://a", "https://a"} {
		s.Alerts = policy.Alerts{URL: url, Query: "up"}
		s.Groups = []policy.Group{{Name: "a", Rules: s.Rules}, {Name: "b", Rules: s.Rules, After: []string{"a"}, AfterSoak: 0}, {Name: "c", Rules: s.Rules, After: []string{"b", "a"}}}
		assert.Equal(t, len(s.Mistakes()), 0, "%v", s.Mistakes())
	}
}

// An agent's patience must end before the controller's deadline, and a shorter one is warned of.
func TestWarnings(t *testing.T) {
	s := policy.DefaultSettings()
	s.Deadlines.Staging, s.Deadlines.Reboot = 25*time.Minute+1, 10*time.Minute+1
	assert.Equal(t, len(s.Warnings()), 0)
	s.Deadlines.Staging, s.Deadlines.Reboot = 25*time.Minute, 10*time.Minute
	assert.Equal(t, len(s.Warnings()), 2)
	assert.Assert(t, strings.Contains(s.Warnings()[0], "staging deadline is shorter than an agent's patience with a busy host (25m0s)"))
	assert.Assert(t, strings.Contains(s.Warnings()[1], "reboot deadline is shorter than an agent's patience with its own reboot (10m0s)"))
}

// The wait after a failure doubles up to its maximum.
func TestBackOff(t *testing.T) {
	s := policy.Settings{Retry: policy.Retry{RetryBase: 10 * time.Minute, RetryMax: time.Hour}}
	for count, want := range []int{10, 10, 20, 40, 60, 60} {
		assert.Equal(t, s.BackOff(count), time.Duration(want)*time.Minute)
	}
	assert.Equal(t, s.BackOff(1e9), time.Hour)
	assert.Equal(t, s.Soon(), time.Hour)
}

// A drain by force has its time on top, and hooks are waited for as long as the slowest may take.
func TestLongest(t *testing.T) {
	r := policy.Rules{Draining: policy.Draining{Drain: time.Minute}}
	assert.Equal(t, r.LongestDrain(), time.Minute)
	r.Eviction.Force = true
	assert.Equal(t, r.LongestDrain(), 6*time.Minute)
	assert.Equal(t, policy.LongestHook(nil), time.Duration(0))
	assert.Equal(t, policy.LongestHook([]policy.Hook{{Timeout: 2}, {Timeout: 3}, {Timeout: 1}}), time.Duration(3))
}

// All that is wrong is told, each mistake by its field, and groups that wait for each other once.
func TestMistakes(t *testing.T) {
	s := policy.DefaultSettings()
	s.MaxStaging, s.PauseAfterUncordon, s.Deadlines.Reboot, s.Deadlines.Return = 0, -1, 0, 0
	wrong := s.Rules
	wrong.Soak, wrong.Topology = -1, []policy.Topology{{MaxDomains: -1}}
	wrong.Hooks.AfterDrain = []policy.Hook{{Name: "h", Annotation: "example.com/h", Timeout: 1}, {Name: "h", Annotation: "h"}}
	wrong.Verify.Pods, wrong.Eviction.Leave = []policy.PodSelector{{}}, []policy.PodSelector{{Namespace: "a"}, {}}
	s.Groups = []policy.Group{{Name: "a", After: []string{"b"}, Rules: s.Rules}, {Name: "b", After: []string{"c"}, Rules: s.Rules},
		{Name: "c", After: []string{"b", "a"}, Rules: s.Rules}, {Name: "d", After: []string{"d"}, Rules: wrong},
		{Name: "e", After: []string{"d", "e"}, Rules: s.Rules}}
	var got []string
	for _, m := range s.Mistakes() {
		got = append(got, m.Field)
	}
	assert.DeepEqual(t, got, []string{"maxStaging", "deadlines.reboot", "deadlines.return", "pauseAfterUncordon", "groups[0].after",
		"groups[3].soak", "groups[3].hooks.afterDrain[1].name", "groups[3].hooks.afterDrain[1].annotation", "groups[3].hooks.afterDrain[1].timeout",
		"groups[3].verify.pods[0]", "groups[3].topology[0].key", "groups[3].topology[0].maxDomains", "groups[3].drain.leave[1]", "groups[3].after", "groups[4].after"})
}

// A word with a typing error is told with the one that was probably meant, and a word of one's own with none.
func TestNearest(t *testing.T) {
	known := []string{"maxUnavailable", "maxLost", "maxFailed", "soak", "", "In", "NotIn", "stageOutsideWindows", "xxy"}
	for word, want := range map[string]string{
		"maxUnavailabel": "maxUnavailable", "maxunavailable": "maxUnavailable", "maxUnavail": "", "MaxLost": "maxLost", "max_lost": "maxLost",
		"maxFail": "maxFailed", "saok": "soak", "osak": "soak", "soaks": "soak", "so": "", "soak": "soak", "in": "In", "notin": "NotIn", "": "", "retry": "", "xxx": "xxy", "spec": "",
		"stageOutsideWinxxxx": "stageOutsideWindows", "stageOutsideWixxxxx": "",
	} {
		assert.Equal(t, policy.Nearest(word, known), want, word)
	}
}
