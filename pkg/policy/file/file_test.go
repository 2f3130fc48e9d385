package file_test

import (
	_ "embed"
	"os"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/google/go-cmp/cmp"
	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
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
		{"no version", "maxLost: 1\n", "version is missing: begin with version: 1"},
		{"another version", "version: 2\n", "line 1: version is 2: begin with version: 1"},
		{"an unknown field", "version: 1\nmaxUnavailabel: 1\n", "line 2: there is no field maxUnavailabel: the nearest is maxUnavailable"},
		{"an unknown field in a group", "version: 1\ngroups:\n- name: a\n  nodeSelecter: {}\n", "line 4: there is no field groups[0].nodeSelecter: the nearest is nodeSelector"},
		{"a field twice", "version: 1\nsoak: 1m\nsoak: 2m\n", "line 3: soak is there already, in line 2: keep one of them"},
		{"a list where a number belongs", "version: 1\nmaxStaging: [1]\n", "line 2: maxStaging is a list: give a whole number"},
		{"no limit", "version: 1\nmaxUnavailable: many\n", `line 2: maxUnavailable "many" is no limit: give a number`},
		{"less than none", "version: 1\nmaxUnavailable: -1\n", `line 2: maxUnavailable "-1" is no limit`},
		{"more than all", "version: 1\nmaxUnavailable: 120%\n", `line 2: maxUnavailable "120%" is more than all: give 0% to 100%`},
		{"no duration", "version: 1\nsoak: 5\n", `line 2: soak "5" is no duration`},
		{"no moment", "version: 1\nfreezes: [{from: tomorrow, to: 2026-01-01T00:00:00Z}]\n", `line 2: freezes[0].from "tomorrow" is no time with a zone`},
		{"a freeze back in time", "version: 1\nfreezes: [{from: 2026-01-02T00:00:00Z, to: 2026-01-01T00:00:00Z}]\n", "line 2: freezes[0].to is 2026-01-01T00:00:00Z, not after from, which is 2026-01-02T00:00:00Z: give an end after the beginning"},
		{"no such zone", "version: 1\nwindows: [{schedule: 0 2 * * *, duration: 1h, timeZone: Europe/Nowhere}]\n", `line 2: windows[0].timeZone is "Europe/Nowhere", which is not known`},
		{"the zone of whatever machine", "version: 1\nwindows: [{schedule: 0 2 * * *, duration: 1h, timeZone: Local}]\n", "line 2: windows[0].timeZone is Local, which depends on the controller's node: give an IANA name"},
		{"no schedule", "version: 1\nwindows: [{schedule: at night, duration: 1h}]\n", `line 2: windows[0].schedule "at night": it has 2 fields`},
		{"no duration of a window", "version: 1\nwindows: [{schedule: 0 2 * * *}]\n", "line 2: windows[0].duration is missing: give one such as 4h"},
		{"no range", "version: 1\nversions: {deny: new ones}\n", `line 2: versions.deny "new ones" is no range of versions`},
		{"a list of versions where a range belongs", "version: 1\nversions: {deny: [1.27.0]}\n", "line 2: versions.deny is a list: give one value"},
		{"a mapping where a range belongs", "version: 1\nversions: {allow: {from: 1.27.0}}\n", "line 2: versions.allow is a mapping: give one value"},
		{"a list where a duration belongs", "version: 1\nsoak: [1m]\n", "line 2: soak is a list: give one value"},
		{"no zones at once", "version: 1\ntopology: [{key: zone, maxDomains: 0}]\n", "line 2: topology[0].maxDomains is 0"},
		{"a hold that is denied", "version: 1\nversions: {deny: 1.27.x, hold: 1.27.0}\n", "line 2: versions.hold is 1.27.0, which versions.deny denies: nothing would ever start"},
		{"a hold that isn't allowed", "version: 1\nversions: {allow: 1.26.x, hold: 1.27.0}\n", "line 2: versions.hold is 1.27.0, which versions.allow does not allow: nothing would ever start"},
		{"neither finish nor return", "version: 1\nwhenWindowCloses: stop\n", `line 2: whenWindowCloses is "stop": give finish or return`},
		{"a pause without a word", "version: 1\npause: {inFlight: return}\n", "line 2: pause.reason is missing: say why"},
		{"values that an operator takes none of", "version: 1\ngroups: [{name: a, nodeSelector: {matchExpressions: [{key: a, operator: Exists, values: [b]}]}}]\n",
			"line 2: groups[0].nodeSelector.matchExpressions[0].values is given, but operator Exists takes no values: take it out"},
		{"a file that is too long", "version: 1\n" + strings.Repeat("#", 512<<10-10), "the policy is longer than 524288 bytes"},
		{"a pause with an empty one", "version: 1\npause: {reason: ''}\n", "line 2: pause.reason is missing: say why"},
		{"a topology without a limit", "version: 1\ntopology: [{key: zone}]\n", "line 2: topology[0] has no limit: give maxUnavailable, maxDomains, or both"},
		{"a group that chooses nothing by mistake", "version: 1\ngroups: [{name: a}]\n", "line 2: groups[0].nodeSelector is missing: give one; {} chooses every node"},
		{"a group after none", "version: 1\ngroups: [{name: a, nodeSelector: {}, after: [b]}]\n", `line 2: groups[0].after[0] is "b", which is no group: name one of this file`},
		{"no such operator", "version: 1\ngroups: [{name: a, nodeSelector: {matchExpressions: [{key: a, operator: Is}]}}]\n", `line 2: groups[0].nodeSelector.matchExpressions[0].operator is "Is": give In, NotIn, Exists or DoesNotExist`},
		{"a grace period of nothing", "version: 1\ndrain: {gracePeriod: 0s}\n", "line 2: drain.gracePeriod is 0s, which would kill every pod at once"},
		{"neither evict nor block", "version: 1\ndrain: {emptyDirData: keep}\n", `line 2: drain.emptyDirData is "keep": give evict or block`},
		{"neither return nor force", "version: 1\ndrain: {atDeadline: reboot}\n", `line 2: drain.atDeadline is "reboot": give return or force`},
		{"a drain that leaves everything", "version: 1\ndrain: {leave: [{}]}\n", "line 2: drain.leave[0] chooses every pod"},
		{"no such operator for pods", "version: 1\ndrain: {waitFor: [{podSelector: {matchExpressions: [{key: a, operator: Is}]}}]}\n", `line 2: drain.waitFor[0].podSelector.matchExpressions[0].operator is "Is"`},
		{"alerts from nowhere", "version: 1\nalerts: {firingOnly: true}\n", "line 2: alerts.url is missing"},
		{"alerts from something else", "version: 1\nalerts: {url: prometheus:9090}\n", `line 2: alerts.url is "prometheus:9090": give one that begins with http:// or https://`},
		{"an occasion that is none", "version: 1\nnotify: {urlKey: a, occasions: [NodeLost, NodeFaild]}\n", `line 2: notify.occasions[1] is "NodeFaild": give RolloutBegan, RolloutEnded, NodeFailed, NodeLost or VersionStopped; the nearest is NodeFailed`},
		{"a list that is a word", "version: 1\nnotify: {urlKey: a, occasions: NodeLost}\n", `line 2: notify.occasions is "NodeLost": give a list`},
		{"a name that is none", "version: 1\nalerts: {url: http://a, ignore: ['(']}\n", `line 2: alerts.ignore[0] is "(", which is no regular expression`},
		{"two documents", "version: 1\n---\nversion: 1\n", "line 2: there is another document after the policy: give one document"},
		{"an anchor bomb", "version: 1\ngroups: &a [*a]\n", "the policy can't be read as YAML: anchor 'a' value contains itself"},
		{"no time for the drain", "version: 1\ndrain: {timeout: 5m}\nloadBalancers: {wait: 5m}\n", "line 3: loadBalancers.wait is 5m0s: give 0 or more, and less than drain.timeout"},
		{"neither protect nor ignore", "version: 1\nautoscalers: off\n", `line 2: autoscalers is "off": give protect or ignore`},
		{"no YAML", "version: 1\nsoak: [1m\n", "the policy can't be read as YAML: did not find expected ',' or ']'"},
		{"no YAML after the policy", "version: 1\n---\n- [\n", "the policy can't be read as YAML"},
		{"an anchor that there isn't", "version: 1\npause: *p\n", "the policy can't be read as YAML: unknown anchor 'p' referenced"},
		{"an anchor that contains itself", "version: 1\ngroups:\n- &a {name: a, nodeSelector: {}, <<: *a}\n", "the policy can't be read as YAML: anchor 'a' value contains itself"},
		{"a merge of a list", "version: 1\ngroups: &g\n- {name: a, nodeSelector: {}, <<: *g}\n", "the policy can't be read as YAML: map merge requires map or sequence of maps as the value"},
		{"anchors that multiply", "version: 1\ngroups:\n- &g {name: a, nodeSelector: {}, after: [" + strings.Repeat("a,", 200) + "]}\n" + strings.Repeat("- *g\n", 200), "document contains excessive aliasing"},
		{"a tag that doesn't fit", "version: 1\nmaxStaging: !!int many\n", "the policy can't be read as YAML: cannot decode !!str `many` as a !!int"},
		{"a list for a policy", "[version]\n", "line 1: the policy is a list: give a mapping"},
		{"a word for a policy", "version\n", `line 1: the policy is "version": give a mapping`},
		{"a field of the fleet in a group", "version: 1\ngroups:\n- {name: a, nodeSelector: {}, retry: {}}\n",
			"line 3: there is no field groups[0].retry: it belongs to the policy itself, not to a part of it"},
		{"a field like no other", "version: 1\nspec: {}\n", "line 2: there is no field spec: take it out"},
		{"a mistake beside what is merged", "version: 1\ndrain: &d {gracePeriod: 5s}\ngroups: [{name: a, nodeSelector: {}, drain: {<<: *d, timeout: 1}}]\n", `line 3: groups[0].drain.timeout "1" is no duration`},
		{"a word with a typing error", "version: 1\nwhenWindowCloses: retrun\n", `whenWindowCloses is "retrun": give finish or return; the nearest is return`},
		{"a group with a typing error", "version: 1\ngroups: [{name: canary, nodeSelector: {}}, {name: b, nodeSelector: {}, after: [cannary]}]\n",
			`line 2: groups[1].after[0] is "cannary", which is no group: name one of this file; the nearest is canary`},
		{"a text where a number belongs", "version: 1\nmaxStaging: many\n", `line 2: maxStaging is "many": give a whole number`},
		{"a text where a truth belongs", "version: 1\nfitWindow: maybe\n", `line 2: fitWindow is "maybe": give true or false`},
		{"values that are missing", "version: 1\ngroups:\n- name: a\n  nodeSelector:\n    matchExpressions:\n    - key: a\n      operator: In\n",
			"line 6: groups[0].nodeSelector.matchExpressions[0].values is missing: operator In needs values"},
		{"a key that is a list", "version: 1\n[a]: 1\n", "line 2: the policy has a key that is no text"},
		{"a plan without a name", "version: 1\nplans: [{nodeSelector: {}, apply: a, target: {content: true}, proof: content, effect: none}]\n", "line 2: plans[0].name is missing: give each plan one"},
		{"a plan that chooses nothing by mistake", "version: 1\nplans: [{name: a, apply: a, target: {content: true}, proof: content, effect: none}]\n", "line 2: plans[0].nodeSelector is missing: give one; {} chooses every node of plans"},
		{"a plan without a template", "version: 1\nplans: [{name: a, nodeSelector: {}, target: {content: true}, proof: content, effect: none}]\n", "line 2: plans[0].apply is missing: name a PodTemplate"},
		{"a plan without a target", "version: 1\nplans: [{name: a, nodeSelector: {}, apply: a, proof: content, effect: none}]\n", "line 2: plans[0].target is missing: give version, channel or content"},
		{"a plan with an empty target", plan("target: {content: false}", "proof: content", "effect: none"), "line 6: plans[0].target has none of version, channel and content: give one of them"},
		{"a plan with two targets", plan("target: {version: v1.36.3, channel: https://a}", "proof: kubeletVersion", "effect: none"), "line 6: plans[0].target has version and channel: keep one of them"},
		{"a plan without a proof", plan("target: {content: true}", "effect: none"), "line 3: plans[0].proof is missing: say where nodes show the target"},
		{"a plan without an effect", plan("target: {content: true}", "proof: content"), "line 3: plans[0].effect is missing: give none, restart or reboot"},
		{"a proof with a typing error", plan("target: {version: v1.36.3}", "proof: kubeletVerion", "effect: none"),
			`line 7: plans[0].proof is "kubeletVerion": give kubeletVersion, osImage, kernelVersion, containerRuntimeVersion or content; the nearest is kubeletVersion`},
		{"an effect that is none", plan("target: {version: v1.36.3}", "proof: kubeletVersion", "effect: boot"), `line 8: plans[0].effect is "boot": give none, restart or reboot`},
		{"no word for a plan's drain", plan("target: {version: v1.36.3}", "proof: kubeletVersion", "effect: none", "drain: yes"), `line 9: plans[0].drain is "yes": give true, cordon or false`},
		{"a reboot in service", plan("target: {version: v1.36.3}", "proof: kubeletVersion", "effect: reboot", "drain: false"), "line 9: plans[0].drain is false, but the effect is reboot: give true or cordon"},
		{"no range of a plan", plan("target: {version: v1.36.3}", "proof: kubeletVersion", "effect: none", "versions: {deny: new ones}"), `line 9: plans[0].versions.deny "new ones" is no range of versions`},
		{"a target that its own plan denies", plan("target: {version: v1.36.3}", "proof: kubeletVersion", "effect: none", "versions: {deny: '>=1.36'}"),
			"line 6: plans[0].target.version is v1.36.3, which versions.deny denies: nothing would ever start"},
		{"a version to hold in a plan", plan("target: {version: v1.36.3}", "proof: kubeletVersion", "effect: none", "versions: {hold: 1.36.3}"),
			"line 9: there is no field plans[0].versions.hold: take it out"},
		{"a deadline of nothing", plan("target: {content: true}", "proof: content", "effect: none", "deadline: 0s"), "line 9: plans[0].deadline is 0s: give 1s or more, and at most 24h0m0s"},
		{"a channel for what has no order", plan("target: {channel: https://a/b}", "proof: osImage", "effect: none"),
			"line 6: plans[0].target.channel is given, but what nodes show at osImage has no order: give target.version, or proof: kubeletVersion"},
		{"a field of a plan with a typing error", plan("target: {content: true}", "proof: content", "efect: none"), "line 8: there is no field plans[0].efect: the nearest is effect"},
		{"a field of the fleet in a plan", plan("target: {content: true}", "proof: content", "effect: none", "soak: 1m"),
			"line 9: there is no field plans[0].soak: it belongs to the policy itself, not to a part of it"},
		{"a contradiction", "version: 1\nretry: {base: 2h, max: 1h}\n", "line 2: retry.max is 1h0m0s, less than retry.base, which is 2h0m0s"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := decode(tc.text)
			assert.ErrorContains(t, err, tc.want)
			assert.Assert(t, !strings.Contains(strings.Join(file.Lines(err), ""), "\n"), "one line: %s", err)
		})
	}
}

// plan is a policy with one plan, whose fields from line 6 on are these.
func plan(fields ...string) string {
	return "version: 1\nplans:\n- name: a\n  nodeSelector: {}\n  apply: a\n  " + strings.Join(fields, "\n  ") + "\n"
}

// What a plan doesn't say is as docs/policy.md says, and its versions are its own.
func TestPlans(t *testing.T) {
	set, err := decode("version: 1\nversions: {hold: 1.27.0, minAge: 1h}\nplans:\n" +
		"- {name: a, nodeSelector: {}, apply: a, target: {version: 1.30.0}, proof: kubeletVersion, effect: restart}\n" +
		"- {name: b, nodeSelector: {matchLabels: {x: y}}, prepare: get, apply: put.b, target: {channel: https://a/b}, proof: kubeletVersion, effect: reboot, drain: cordon,\n" +
		"   versions: {downgrade: true, minAge: 2h}, maxMinorSkip: 1, deadline: 90s}\n" +
		"- {name: c, nodeSelector: {}, apply: c, target: {content: true}, proof: content, effect: none}\n")
	assert.NilError(t, err)
	assert.DeepEqual(t, set.Plans, []policy.Plan{
		{Name: "a", Apply: "a", Target: policy.PlanTarget{Version: "1.30.0"}, Proof: marker.ProofKubelet, Effect: marker.EffectRestart, Deadline: 30 * time.Minute},
		{Name: "b", Selector: policy.Selector{{Key: "x", Operator: policy.In, Values: []string{"y"}}}, Prepare: "get", Apply: "put.b", Target: policy.PlanTarget{Channel: "https://a/b"},
			Proof: marker.ProofKubelet, Effect: marker.EffectReboot, Drain: marker.DrainCordon, Versions: policy.Versions{Downgrade: true, MinAge: 2 * time.Hour}, MaxMinorSkip: 1, Deadline: 90 * time.Second},
		{Name: "c", Apply: "c", Target: policy.PlanTarget{Content: true}, Proof: marker.ProofContent, Effect: marker.EffectNone, Deadline: 30 * time.Minute},
	})
	// A version that YAML takes for a number is the text that stands there.
	set, err = decode(plan("target: {version: 1.30}", "proof: osImage", "effect: none"))
	assert.NilError(t, err)
	assert.Equal(t, set.Plans[0].Target.Version, "1.30")
	// A k3s version is in a range, with its leading v and its build.
	_, err = decode(plan("target: {version: v1.36.3+k3s1}", "proof: kubeletVersion", "effect: none", "versions: {allow: '>=1.36 <1.37'}"))
	assert.NilError(t, err)
}

// The drain of a plan is a word or a truth, in quotes or not; null is what the effect says.
func TestDrainOfAPlan(t *testing.T) {
	for text, want := range map[string]marker.PlanDrain{"true": marker.DrainAll, `"true"`: marker.DrainAll, "cordon": marker.DrainCordon, "'cordon'": marker.DrainCordon,
		"false": marker.DrainNothing, `"false"`: marker.DrainNothing, "null": marker.DrainNothing} {
		set, err := decode(plan("target: {content: true}", "proof: content", "effect: none", "drain: "+text))
		assert.NilError(t, err, text)
		assert.Equal(t, set.Plans[0].Drains(), want, text)
	}
}

// What merely follows from a mistake of a plan is none.
func TestNothingFollowsFromAPlansMistake(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{plan("target: {version: v1.36.3}", "proof: kubelet", "effect: none", "maxMinorSkip: 1"),
			`line 7: plans[0].proof is "kubelet": give kubeletVersion, osImage, kernelVersion, containerRuntimeVersion or content`},
		{plan("target: {chanel: https://a}", "proof: content", "effect: none"), "line 6: there is no field plans[0].target.chanel: the nearest is channel"},
		{plan("target: {content: maybe}", "proof: content", "effect: none", "versions: {allow: 1.x}"), `line 6: plans[0].target.content is "maybe": give true or false`},
		{plan("target: {version: v1.36}", "proof: kubeletVersion", "effect: none", "versions: {allow: 1.x}"),
			`line 6: plans[0].target.version is "v1.36": give all of a version, as kubelets show it, such as v1.36.3`},
		{plan("target: {version: v1.36.3}", "proof: kubeletVersion", "effect: [reboot]", "drain: false"), "line 8: plans[0].effect is a list: give one value"},
	} {
		_, err := decode(tc.text)
		assert.Error(t, err, tc.want)
	}
}

// Every policy that docs/policy.md shows is a good one.
func TestExamplesOfThePage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/policy.md")
	assert.NilError(t, err)
	shown := 0
	for _, block := range strings.Split(string(page), "```yaml\n")[1:] {
		text, _, _ := strings.Cut(block, "```")
		if !strings.Contains(text, "version: 1\n") {
			text = "version: 1\n" + text
		}
		_, err := decode(text)
		assert.NilError(t, err, text)
		shown++
	}
	assert.Assert(t, shown > 1)
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
  drain: {atDeadline: return, waitFor: [], leave: [{namespace: storage}], predict: false, evictionsPerHour: 50}
`)
	assert.NilError(t, err)
	fleet := policy.Eviction{GracePeriod: 20 * time.Second, EmptyDirData: policy.Evict, UnmanagedPods: policy.Block, Force: true, Predict: true, PerHour: 1000,
		WaitFor: []policy.PodSelector{{Namespace: "batch", Selector: policy.Selector{{Key: "job", Operator: policy.In, Values: []string{"nightly"}}}}}}
	assert.DeepEqual(t, set.Eviction, fleet)
	group := fleet
	group.WaitFor, group.Leave, group.Force, group.Predict, group.PerHour = nil, []policy.PodSelector{{Namespace: "storage"}}, false, false, 50
	assert.DeepEqual(t, set.Groups[0].Eviction, group)
	assert.Equal(t, set.Groups[0].Drain, time.Hour)
}

// A topology that limits the zones alone limits no nodes, and a file may be as long as it may be.
func TestTopology(t *testing.T) {
	set, err := decode("version: 1\ntopology: [{key: zone, maxDomains: 1}]\n" + strings.Repeat("#", 512<<10-50))
	assert.NilError(t, err)
	assert.DeepEqual(t, set.Topology, []policy.Topology{{Key: "zone", MaxDomains: 1, MaxUnavailable: policy.Unlimited}}, limits)
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
		"{annotation: example.com/a, timeout: 5m}":                                                             "hooks.afterDrain[0].name is missing",
		"{name: a, timeout: 5m}":                                                                               "hooks.afterDrain[0].annotation is missing",
		"{name: a, annotation: done, timeout: 5m}":                                                             `hooks.afterDrain[0].annotation is "done": give a key of your own`,
		"{name: a, annotation: bottlerocket.aws/paused, timeout: 5m}":                                          "give a key of your own",
		"{name: a, annotation: 'example.com/a b', timeout: 5m}":                                                "give a key of your own",
		"{name: a, annotation: example.com/a}":                                                                 "hooks.afterDrain[0].timeout is missing",
		"{name: a, annotation: example.com/a, timeout: 5m, onTimeout: fail}":                                   `hooks.afterDrain[0].onTimeout is "fail": give abort or ignore`,
		"{name: a, annotation: example.com/a, timeout: 5m}, {name: a, annotation: example.com/b, timeout: 5m}": `hooks.afterDrain[1].name is "a", as is hooks.afterDrain[0].name`,
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
		"{pods: [{podSelector: {matchExpressions: [{key: a, operator: Is}]}}]}": `verify.pods[0].podSelector.matchExpressions[0].operator is "Is"`,
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
