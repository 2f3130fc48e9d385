package file_test

import (
	_ "embed"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/google/go-cmp/cmp"
	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/file"
)

//go:embed default.yaml
var example []byte

var limits = cmp.AllowUnexported(policy.Limit{})

func decode(text string) (policy.Settings, error) {
	return file.Decode([]byte(text), policy.DefaultSettings(), time.LoadLocation)
}

// The commented example is the default, to the last field.
func TestExampleIsTheDefault(t *testing.T) {
	got, err := decode(string(example))
	assert.NilError(t, err)
	assert.DeepEqual(t, got, policy.DefaultSettings(), limits)
	empty, err := decode("version: 1\n")
	assert.NilError(t, err)
	assert.DeepEqual(t, empty, policy.DefaultSettings(), limits)
}

// Each mistake gets one line that names the thing, where it is, and the remedy.
func TestMistakes(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"nothing", "", "the policy is empty"},
		{"no version", "maxLost: 1\n", "begin with version: 1"},
		{"another version", "version: 2\n", "begin with version: 1"},
		{"an unknown field", "version: 1\nmaxUnavailabel: 1\n", "line 2: there is no field maxUnavailabel"},
		{"an unknown field in a group", "version: 1\ngroups:\n- name: a\n  nodeSelecter: {}\n", "line 4: there is no field nodeSelecter"},
		{"a field twice", "version: 1\nsoak: 1m\nsoak: 2m\n", `line 3: mapping key "soak" already defined at line 2`},
		{"a list where a number belongs", "version: 1\nmaxStaging: [1]\n", "line 2: a list does not belong here"},
		{"no limit", "version: 1\nmaxUnavailable: many\n", `line 2: "many" is no limit: give a number`},
		{"less than none", "version: 1\nmaxUnavailable: -1\n", "is no limit"},
		{"more than all", "version: 1\nmaxUnavailable: 120%\n", "more than all"},
		{"no duration", "version: 1\nsoak: 5\n", `line 2: "5" is no duration`},
		{"no moment", "version: 1\nfreezes: [{from: tomorrow, to: 2026-01-01T00:00:00Z}]\n", `"tomorrow" is no moment`},
		{"a freeze back in time", "version: 1\nfreezes: [{from: 2026-01-02T00:00:00Z, to: 2026-01-01T00:00:00Z}]\n", "after its beginning"},
		{"no such zone", "version: 1\nwindows: [{schedule: 0 2 * * *, duration: 1h, timeZone: Europe/Nowhere}]\n", `timeZone "Europe/Nowhere" is not known`},
		{"the zone of whatever machine", "version: 1\nwindows: [{schedule: 0 2 * * *, duration: 1h, timeZone: Local}]\n", "IANA name"},
		{"no schedule", "version: 1\nwindows: [{schedule: at night, duration: 1h}]\n", "windows[0]"},
		{"no duration of a window", "version: 1\nwindows: [{schedule: 0 2 * * *}]\n", "windows[0]: it has no duration"},
		{"no range", "version: 1\nversions: {deny: new ones}\n", `"new ones" is no range of versions`},
		{"a list of versions where a range belongs", "version: 1\nversions: {deny: [1.27.0]}\n", "line 2: a list or a mapping does not belong here"},
		{"a mapping where a range belongs", "version: 1\nversions: {allow: {from: 1.27.0}}\n", "line 2: a list or a mapping does not belong here"},
		{"a list where a duration belongs", "version: 1\nsoak: [1m]\n", "line 2: a list or a mapping does not belong here"},
		{"no zones at once", "version: 1\ntopology: [{key: zone, maxDomains: 0}]\n", "maxDomains of topology zone is 0"},
		{"a hold that is denied", "version: 1\nversions: {deny: 1.27.x, hold: 1.27.0}\n", "nothing would ever start"},
		{"a hold that isn't allowed", "version: 1\nversions: {allow: 1.26.x, hold: 1.27.0}\n", "nothing would ever start"},
		{"neither finish nor return", "version: 1\nwhenWindowCloses: stop\n", `"stop" is neither finish nor return`},
		{"a pause without a word", "version: 1\npause: {inFlight: return}\n", "a pause has no reason"},
		{"a topology without a limit", "version: 1\ntopology: [{key: zone}]\n", `topology "zone" has no limit`},
		{"a group that chooses nothing by mistake", "version: 1\ngroups: [{name: a}]\n", `group "a": it has no nodeSelector`},
		{"a group after none", "version: 1\ngroups: [{name: a, nodeSelector: {}, after: [b]}]\n", `"b", which is no group`},
		{"no such operator", "version: 1\ngroups: [{name: a, nodeSelector: {matchExpressions: [{key: a, operator: Is}]}}]\n", `operator "Is"`},
		{"a grace period of nothing", "version: 1\ndrain: {gracePeriod: 0s}\n", "would kill every pod at once"},
		{"neither evict nor block", "version: 1\ndrain: {emptyDirData: keep}\n", `"keep" is neither evict nor block`},
		{"neither return nor force", "version: 1\ndrain: {atDeadline: reboot}\n", `"reboot" is neither return nor force`},
		{"a drain that leaves everything", "version: 1\ndrain: {leave: [{}]}\n", "chooses every pod"},
		{"no such operator for pods", "version: 1\ndrain: {waitFor: [{podSelector: {matchExpressions: [{key: a, operator: Is}]}}]}\n", `drain.waitFor: operator "Is" of its podSelector`},
		{"alerts from nowhere", "version: 1\nalerts: {firingOnly: true}\n", "alerts has no url"},
		{"alerts from something else", "version: 1\nalerts: {url: prometheus:9090}\n", "begins with http:// or https://"},
		{"a name that is none", "version: 1\nalerts: {url: http://a, ignore: ['(']}\n", `"(", which is no regular expression`},
		{"two documents", "version: 1\n---\nversion: 1\n", "give one document"},
		{"an anchor bomb", "version: 1\ngroups: &a [*a]\n", "line"},
		{"no time for the drain", "version: 1\ndrain: {timeout: 5m}\nloadBalancers: {wait: 5m}\n", "loadBalancers.wait is 5m0s: give 0 or more, and less than drain.timeout"},
		{"neither protect nor ignore", "version: 1\nautoscalers: off\n", `autoscalers is "off": give protect or ignore`},
		{"a contradiction", "version: 1\nretry: {base: 2h, max: 1h}\n", "retry waits"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := decode(tc.text)
			assert.ErrorContains(t, err, tc.want)
			assert.Assert(t, !strings.Contains(err.Error(), "\n"), "one line: %s", err)
		})
	}
}

// A group's drain is the fleet's but for what it says itself.
func TestDrainOfAGroup(t *testing.T) {
	set, err := decode(`version: 1
drain:
  timeout: 1h
  gracePeriod: 20s
  unmanagedPods: block
  waitFor: [{namespace: batch, podSelector: {matchLabels: {job: nightly}}}]
  atDeadline: force
groups:
- name: a
  nodeSelector: {}
  drain: {atDeadline: return, waitFor: [], leave: [{namespace: storage}], predict: false}
`)
	assert.NilError(t, err)
	fleet := policy.Eviction{GracePeriod: 20 * time.Second, EmptyDirData: policy.Evict, UnmanagedPods: policy.Block, Force: true, Predict: true,
		WaitFor: []policy.PodSelector{{Namespace: "batch", Selector: policy.Selector{{Key: "job", Operator: policy.In, Values: []string{"nightly"}}}}}}
	assert.DeepEqual(t, set.Eviction, fleet)
	group := fleet
	group.WaitFor, group.Leave, group.Force, group.Predict = nil, []policy.PodSelector{{Namespace: "storage"}}, false, false
	assert.DeepEqual(t, set.Groups[0].Eviction, group)
	assert.Equal(t, set.Groups[0].Drain, time.Hour)
}

// What the fleet's rules say of load balancers and autoscalers holds for a group, but for what the group says itself.
func TestMarksForOthers(t *testing.T) {
	set, err := decode("version: 1\nloadBalancers: {wait: 1m}\nautoscalers: ignore\ngroups:\n" +
		"- {name: a, nodeSelector: {}, loadBalancers: {exclude: false}}\n- {name: b, nodeSelector: {}, autoscalers: protect}\n")
	assert.NilError(t, err)
	a, b := set.Groups[0].Rules, set.Groups[1].Rules
	assert.Equal(t, set.Balancers, policy.Balancers{Exclude: true, Wait: time.Minute})
	assert.Equal(t, a.Balancers, policy.Balancers{Wait: time.Minute})
	assert.Equal(t, b.Balancers, set.Balancers)
	assert.Assert(t, !set.Protect && !a.Protect && b.Protect)
}

// Hooks are a group's own where it says so, also none; what isn't said of one is that it aborts.
func TestHooks(t *testing.T) {
	const fleet = "version: 1\nhooks:\n  afterDrain: [{name: a, annotation: example.com/a, timeout: 5m}]\n  beforeUncordon: [{name: b, annotation: example.com/b, timeout: 1m, onTimeout: ignore}]\n"
	set, err := decode(fleet + "groups: [{name: g, nodeSelector: {}, hooks: {afterDrain: []}}]\n")
	assert.NilError(t, err)
	assert.DeepEqual(t, set.Hooks.AfterDrain, []policy.Hook{{Name: "a", Annotation: "example.com/a", Timeout: 5 * time.Minute, OnTimeout: policy.Abort}})
	b := []policy.Hook{{Name: "b", Annotation: "example.com/b", Timeout: time.Minute, OnTimeout: policy.Ignore}}
	assert.DeepEqual(t, set.Hooks.BeforeUncordon, b)
	assert.Equal(t, len(set.Groups[0].Hooks.AfterDrain), 0)
	assert.DeepEqual(t, set.Groups[0].Hooks.BeforeUncordon, b)
	for text, want := range map[string]string{
		"{annotation: example.com/a, timeout: 5m}":                                                             "a hook has no name",
		"{name: a, timeout: 5m}":                                                                               `annotation of hook "a" is ""`,
		"{name: a, annotation: done, timeout: 5m}":                                                             `is "done": give a key of your own`,
		"{name: a, annotation: bottlerocket.aws/paused, timeout: 5m}":                                          "give a key of your own",
		"{name: a, annotation: 'example.com/a b', timeout: 5m}":                                                "give a key of your own",
		"{name: a, annotation: example.com/a}":                                                                 `timeout of hook "a" is 0s`,
		"{name: a, annotation: example.com/a, timeout: 5m, onTimeout: fail}":                                   `"fail" is neither abort nor ignore`,
		"{name: a, annotation: example.com/a, timeout: 5m}, {name: a, annotation: example.com/b, timeout: 5m}": `hook "a" is there twice`,
	} {
		_, err := decode("version: 1\nhooks: {afterDrain: [" + text + "]}\n")
		assert.ErrorContains(t, err, want)
	}
}

// Verify is a group's own where it says so.
func TestVerify(t *testing.T) {
	set, err := decode("version: 1\nverify: {pods: [{namespace: kube-system, podSelector: {matchLabels: {app: cni}}}], deadline: 5m}\n" +
		"groups: [{name: g, nodeSelector: {}, verify: {pods: [], onWorkloads: ignore}}]\n")
	assert.NilError(t, err)
	assert.DeepEqual(t, set.Verify, policy.Verify{Pods: []policy.PodSelector{{Namespace: "kube-system", Selector: policy.Selector{{Key: "app", Operator: policy.In, Values: []string{"cni"}}}}},
		Deadline: 5 * time.Minute, OnWorkloads: policy.FailOnWorkloads})
	assert.DeepEqual(t, set.Groups[0].Verify, policy.Verify{Deadline: 5 * time.Minute, OnWorkloads: policy.IgnoreWorkloads})
	for text, want := range map[string]string{
		"{onWorkloads: wait}":         `verify.onWorkloads is "wait": give fail or ignore`,
		"{deadline: 0s}":              "verify.deadline is 0s",
		"{pods: [{namespace: x}]}":    "chooses every pod",
		"{pods: [{podSelector: {}}]}": "chooses every pod",
		"{pods: [{podSelector: {matchExpressions: [{key: a, operator: Is}]}}]}": `verify.pods: operator "Is" of its podSelector`,
	} {
		_, err := decode("version: 1\nverify: " + text + "\n")
		assert.ErrorContains(t, err, want)
	}
}

// What stands in the file of alerts takes the place of what the flags would say.
func TestAlerts(t *testing.T) {
	set, err := decode("version: 1\nalerts: {url: http://prometheus:9090, query: ALERTS, ignore: [^Watchdog$, Info], firingOnly: true}\n")
	assert.NilError(t, err)
	assert.Equal(t, set.Alerts.URL, "http://prometheus:9090")
	assert.Equal(t, set.Alerts.Query, "ALERTS")
	assert.Assert(t, set.Alerts.FiringOnly)
	assert.Equal(t, len(set.Alerts.Ignore), 2)
	again, err := file.Decode([]byte("version: 1\nalerts: {ignore: [Etcd]}\n"), set, time.LoadLocation)
	assert.NilError(t, err)
	assert.Equal(t, len(again.Alerts.Ignore), 1)
	assert.Equal(t, again.Alerts.Ignore[0].String(), "Etcd")
	assert.Equal(t, set.Alerts.Ignore[0].String(), "^Watchdog$", "the flags' own stay as they are")
	assert.Equal(t, again.Alerts.URL, set.Alerts.URL)
}
