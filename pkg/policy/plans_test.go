package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// kubelets is a plan without a mistake.
func kubelets() policy.Plan {
	return policy.Plan{Name: "kubelets", Prepare: "download", Apply: "upgrade", Target: policy.PlanTarget{Version: "v1.36.3+k3s1"},
		Proof: marker.ProofKubelet, Effect: marker.EffectRestart, Drain: marker.DrainCordon, MaxMinorSkip: 1, Deadline: policy.DefaultPlanDeadline}
}

// contents is one whose target is its content.
func contents() policy.Plan {
	return policy.Plan{Name: "contents", Apply: "put", Target: policy.PlanTarget{Content: true}, Proof: marker.ProofContent, Effect: marker.EffectNone,
		Deadline: policy.DefaultPlanDeadline}
}

// Each thing in a plan that can't be meant is one mistake, told with the field, and with those that it rests on too.
func TestMistakesOfPlans(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(kubelets, contents *policy.Plan)
		want   string
		beside []string
	}{
		{"no name", func(k, _ *policy.Plan) { k.Name = "" }, "plans[0].name is missing: give each plan one", nil},
		{"a name with a capital", func(k, _ *policy.Plan) { k.Name = "Kubelets" }, `plans[0].name is "Kubelets": give at most 40 lower-case letters`, nil},
		{"a long name", func(k, _ *policy.Plan) { k.Name = strings.Repeat("k", 41) }, `plans[0].name is "kkk`, nil},
		{"a name twice", func(_, c *policy.Plan) { c.Name = "kubelets" }, `plans[1].name is "kubelets", as is plans[0].name: give each plan a name of its own`, nil},
		{"no template", func(k, _ *policy.Plan) { k.Apply = "" }, "plans[0].apply is missing: name a PodTemplate", nil},
		{"a template that can't be", func(k, _ *policy.Plan) { k.Apply = "upgrade_" }, `plans[0].apply is "upgrade_": give the name of a PodTemplate`, nil},
		{"a template with an empty part", func(k, _ *policy.Plan) { k.Apply = "a..b" }, `plans[0].apply is "a..b": give the name of a PodTemplate`, nil},
		{"a template of another namespace", func(k, _ *policy.Plan) { k.Apply = "a/b" }, `plans[0].apply is "a/b": give the name of a PodTemplate`, nil},
		{"a template that the marks can't hold", func(k, _ *policy.Plan) { k.Apply = strings.Repeat("a", 129) }, "plans[0].apply is longer than a node's annotation holds", nil},
		{"a download that can't be", func(k, _ *policy.Plan) { k.Prepare = "-" }, `plans[0].prepare is "-": give the name of a PodTemplate`, nil},
		{"a download that the marks can't hold", func(k, _ *policy.Plan) { k.Prepare = strings.Repeat("a", 129) }, "plans[0].prepare is longer than a node's annotation holds", nil},
		{"one template for both", func(k, _ *policy.Plan) { k.Prepare = "upgrade" }, `plans[0].prepare is "upgrade", as is apply: give it a PodTemplate of its own`, []string{"plans[0].apply"}},
		{"no target", func(k, _ *policy.Plan) { k.Target = policy.PlanTarget{} }, "plans[0].target has none of version, channel and content: give one of them", nil},
		{"two targets", func(k, _ *policy.Plan) { k.Target.Content = true }, "plans[0].target has version and content: keep one of them", nil},
		{"three targets", func(k, _ *policy.Plan) { k.Target.Content, k.Target.Channel = true, "https://a" }, "plans[0].target has version and channel and content: keep", nil},
		{"a number sign", func(k, _ *policy.Plan) {
			k.Proof, k.MaxMinorSkip, k.Target.Version = marker.ProofOSImage, 0, "Linux #1"
		}, `plans[0].target.version is "Linux #1": give what nodes show`, nil},
		{"a long version", func(k, _ *policy.Plan) {
			k.Proof, k.MaxMinorSkip, k.Target.Version = marker.ProofOSImage, 0, strings.Repeat("x", 65)
		}, `plans[0].target.version is "xxx`, nil},
		{"the word for content", func(k, _ *policy.Plan) { k.Target.Version = "content" }, `plans[0].target.version is "content": give what nodes show, in at most 64`, nil},
		{"the word for content, by a v", func(k, _ *policy.Plan) {
			k.Proof, k.MaxMinorSkip, k.Target.Version = marker.ProofOSImage, 0, "vcontent"
		}, `plans[0].target.version is "vcontent"`, nil},
		{"nothing but a v", func(k, _ *policy.Plan) { k.Proof, k.MaxMinorSkip, k.Target.Version = marker.ProofOSImage, 0, "v" }, `plans[0].target.version is "v": give what`, nil},
		{"a part of a kubelet's version", func(k, _ *policy.Plan) { k.Target.Version = "v1.36" }, `plans[0].target.version is "v1.36": give all of a version`, []string{"plans[0].proof"}},
		{"a channel for what has no order", func(k, _ *policy.Plan) {
			k.Proof, k.MaxMinorSkip, k.Target = marker.ProofKernel, 0, policy.PlanTarget{Channel: "https://a"}
		}, "plans[0].target.channel is given, but what nodes show at kernelVersion has no order", []string{"plans[0].proof"}},
		{"no proof", func(_, c *policy.Plan) { c.Proof = "" }, "plans[1].proof is missing: say where nodes show the target", nil},
		{"a proof that there isn't", func(_, c *policy.Plan) { c.Proof = "contents" }, `plans[1].proof is "contents": give one of [kubeletVersion osImage`, nil},
		{"a version as the proof of content", func(_, c *policy.Plan) { c.Proof = marker.ProofOSImage }, "plans[1].proof is osImage, but the target is content: give content", []string{"plans[1].target.content"}},
		{"content as the proof of a version", func(_, c *policy.Plan) { c.Target = policy.PlanTarget{Version: "1.2.3"} }, "plans[1].proof is content, but the target is a version", []string{"plans[1].target"}},
		{"content as the proof of a channel", func(_, c *policy.Plan) { c.Target = policy.PlanTarget{Channel: "https://a"} }, "plans[1].proof is content, but the target is a version", []string{"plans[1].target"}},
		{"no effect", func(k, _ *policy.Plan) { k.Effect = "" }, "plans[0].effect is missing: give none, restart or reboot", nil},
		{"an effect that there isn't", func(k, _ *policy.Plan) { k.Effect = "rebot" }, `plans[0].effect is "rebot": give one of [none restart reboot]; the nearest is reboot`, nil},
		{"a drain that there isn't", func(k, _ *policy.Plan) { k.Drain = "cordn" }, `plans[0].drain is "cordn": give one of [true cordon false]; the nearest is cordon`, nil},
		{"a restart in service", func(k, _ *policy.Plan) { k.Drain = marker.DrainNothing }, "plans[0].drain is false, but the effect is restart: give true or cordon", []string{"plans[0].effect"}},
		{"a reboot in service", func(_, c *policy.Plan) { c.Effect, c.Drain = marker.EffectReboot, marker.DrainNothing }, "plans[1].drain is false, but the effect is reboot", []string{"plans[1].effect"}},
		{"an age back in time", func(k, _ *policy.Plan) { k.Versions.MinAge = -1 }, "plans[0].versions.minAge is -1ns: give 0 or more", nil},
		{"a target that is denied", func(k, _ *policy.Plan) { k.Versions.Deny = odd{"1.36.3+k3s1"} }, "plans[0].target.version is v1.36.3+k3s1, which versions.deny denies", []string{"plans[0].versions.deny"}},
		{"a target that isn't allowed", func(k, _ *policy.Plan) { k.Versions.Allow = odd{"1.36.4"} }, "plans[0].target.version is v1.36.3+k3s1, which versions.allow does not allow", []string{"plans[0].versions.allow"}},
		{"content that is allowed", func(_, c *policy.Plan) { c.Versions.Allow = odd{} }, "plans[1].versions.allow is given, but content has no version: take it out", []string{"plans[1].target"}},
		{"content that is denied", func(_, c *policy.Plan) { c.Versions.Deny = odd{} }, "plans[1].versions.deny is given, but content has no version: take it out", []string{"plans[1].target"}},
		{"a step down", func(k, _ *policy.Plan) { k.MaxMinorSkip = -1 }, "plans[0].maxMinorSkip is -1: give 1 or more, or 0 for no limit", nil},
		{"steps of what has none", func(_, c *policy.Plan) { c.MaxMinorSkip = 1 }, "plans[1].maxMinorSkip is 1, which goes by proof: kubeletVersion alone", []string{"plans[1].proof"}},
		{"no time", func(k, _ *policy.Plan) { k.Deadline = 0 }, "plans[0].deadline is 0s: give 1s or more, and at most 24h0m0s", nil},
		{"less time than pods have", func(k, _ *policy.Plan) { k.Deadline = time.Second - 1 }, "plans[0].deadline is 999.999999ms", nil},
		{"more than a day", func(k, _ *policy.Plan) { k.Deadline = 24*time.Hour + 1 }, "plans[0].deadline is 24h0m0.000000001s", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := policy.DefaultSettings()
			s.Plans = []policy.Plan{kubelets(), contents()}
			assert.Equal(t, len(s.Mistakes()), 0, "%v", s.Mistakes())
			tc.change(&s.Plans[0], &s.Plans[1])
			assert.ErrorContains(t, s.Validate(), tc.want)
			found := s.Mistakes()
			assert.Equal(t, len(found), 1, "%v", found)
			assert.Assert(t, slices.Equal(found[0].Beside, tc.beside), "%q", found[0].Beside)
			assert.Assert(t, len(found[0].Says) <= 400)
		})
	}
}

// A plan without a name is one mistake however many there are, and the third of a name is told with the first.
func TestNamesOfPlans(t *testing.T) {
	s := policy.DefaultSettings()
	s.Plans = []policy.Plan{kubelets(), kubelets(), kubelets(), {}, {}}
	var got []string
	for _, m := range s.Mistakes() {
		if strings.HasSuffix(m.Field, ".name") {
			got = append(got, m.Error())
		}
	}
	assert.DeepEqual(t, got, []string{`plans[1].name is "kubelets", as is plans[0].name: give each plan a name of its own`,
		`plans[2].name is "kubelets", as is plans[0].name: give each plan a name of its own`, "plans[3].name is missing: give each plan one", "plans[4].name is missing: give each plan one"})
}

// A channel is asked over https, without a password in the policy, and a message doesn't tell one.
func TestChannels(t *testing.T) {
	for channel, good := range map[string]bool{
		"https://update.k3s.io/v1-release/channels/stable": true, "https://a": true, "https://a:8443/b%20c?d=e%2f&f=\"g\"": true, "https://[::1]:443/": true, "https://A.b-c?x": true,
		"https://a/" + strings.Repeat("b", 2038): true, "https://a/" + strings.Repeat("b", 2039): false,
		"http://a/b": false, "HTTPS://a": false, "a/b": false, "https://": false, "https:///b": false, "https://u:secret@a/b": false, "https://secret@a": false, "https://a/b#c": false, "https://a/%zz": false,
		"https://a /b": false, "https://a/ b": false, "https://-a": false, "https://a:port": false, "https://a\n": false, "https://a/ü": false, "https://[a": false, "https://a:123456": false,
	} {
		s, k := policy.DefaultSettings(), kubelets()
		k.Target = policy.PlanTarget{Channel: channel}
		s.Plans = []policy.Plan{k}
		if good {
			assert.NilError(t, s.Validate(), channel)
			continue
		}
		assert.ErrorContains(t, s.Validate(), "plans[0].target.channel is no address to ask: give one that begins with https://", channel)
		assert.Assert(t, !strings.Contains(s.Validate().Error(), "secret"))
	}
}

// What is just possible in a plan is no mistake.
func TestPlansAtTheirEdges(t *testing.T) {
	s := policy.DefaultSettings()
	for i, change := range []func(p *policy.Plan){
		func(p *policy.Plan) { p.Name = strings.Repeat("k", 40) },
		func(p *policy.Plan) { p.Apply, p.Prepare = strings.Repeat("a", 128), "" },
		func(p *policy.Plan) { p.Apply, p.Prepare = "0.a-b.c", "1" },
		func(p *policy.Plan) { p.Effect, p.Drain = marker.EffectReboot, "" },
		func(p *policy.Plan) { p.Effect, p.Drain = marker.EffectNone, marker.DrainNothing },
		func(p *policy.Plan) { p.Effect, p.Drain = marker.EffectNone, marker.DrainCordon },
		func(p *policy.Plan) { p.Effect, p.Drain = marker.EffectNone, marker.DrainAll },
		func(p *policy.Plan) { p.Deadline = time.Second },
		func(p *policy.Plan) { p.Deadline = 24 * time.Hour },
		func(p *policy.Plan) { p.MaxMinorSkip, p.Target.Version = 0, "1.36.3-rc.1" },
		func(p *policy.Plan) {
			p.Versions = policy.Versions{Allow: odd{"1.36.3+k3s1"}, Deny: odd{"1.36.4"}, Downgrade: true, MinAge: time.Hour}
		},
		func(p *policy.Plan) {
			p.MaxMinorSkip, p.Proof, p.Target.Version = 0, marker.ProofRuntime, "containerd://2.1.4"
		},
		func(p *policy.Plan) {
			p.MaxMinorSkip, p.Proof, p.Target.Version = 0, marker.ProofOSImage, strings.Repeat("x", 64)
		},
		func(p *policy.Plan) {
			p.MaxMinorSkip, p.Proof, p.Target = 0, marker.ProofContent, policy.PlanTarget{Content: true}
		},
	} {
		p := kubelets()
		p.Name = strings.Repeat("p", i+1)
		change(&p)
		s.Plans = append(s.Plans, p)
	}
	assert.Equal(t, len(s.Mistakes()), 0, "%v", s.Mistakes())
}

// L4: a node remembers the content of so many plans, and would run those beyond them again and again.
func TestPlansOfContent(t *testing.T) {
	s := policy.DefaultSettings()
	for i := range marker.MaxPlansDone {
		p := contents()
		p.Name = fmt.Sprintf("contents-%d", i)
		s.Plans = append(s.Plans, p)
	}
	s.Plans = append(s.Plans, kubelets())
	assert.Equal(t, len(s.Mistakes()), 0, "%v", s.Mistakes())
	s.Plans = append(s.Plans, contents(), contents())
	s.Plans[66].Name = "last"
	assert.Equal(t, len(s.Mistakes()), 1, "it is said once: %v", s.Mistakes())
	assert.ErrorContains(t, s.Validate(), "plans[65].target.content is one more than a node remembers, which is the content of 64 plans")
}

// A node is drained unless the plan says otherwise, or does nothing that its pods would notice.
func TestDrains(t *testing.T) {
	for effect, want := range map[marker.Effect]marker.PlanDrain{marker.EffectNone: marker.DrainNothing, marker.EffectRestart: marker.DrainAll, marker.EffectReboot: marker.DrainAll} {
		assert.Equal(t, (&policy.Plan{Effect: effect}).Drains(), want)
		for _, said := range marker.PlanDrains() {
			assert.Equal(t, (&policy.Plan{Effect: effect, Drain: said}).Drains(), said)
		}
	}
}

// A step of as many minor versions as the plan allows is none too many, and one more is.
func TestSkipsMinor(t *testing.T) {
	for _, tc := range []struct {
		most     int
		from, to string
		want     bool
	}{
		{1, "1.35.0", "1.36.9", false}, {1, "1.35.9", "1.37.0", true}, {1, "v1.35.0", "1.37.0", true}, {1, "1.35.0", "v1.36.0+k3s1", false},
		{1, "1.35.0+k3s1", "1.37.0-rc.1", true}, {2, "1.35.0", "1.37.0", false}, {2, "1.35.0", "1.38.0", true}, {1, "1.9.0", "1.10.0", false}, {1, "1.9.0", "1.11.0", true},
		{1, "1.35.0", "1.35.7", false}, {1, "1.37.0", "1.35.0", false}, {1, "1.35.0", "2.0.0", true}, {50, "1.35.0", "2.35.0", true}, {1, "2.0.0", "1.35.0", false},
		{0, "1.35.0", "1.99.0", false}, {0, "1.35.0", "2.0.0", false},
		{1, "1.35", "1.37.0", false}, {1, "1.35.0", "stable", false}, {1, "", "1.37.0", false}, {1, "vv1.35.0", "1.37.0", false}, {1, "1.35.0", "1.99999999999999999999.0", false},
	} {
		assert.Equal(t, (&policy.Plan{MaxMinorSkip: tc.most}).SkipsMinor(tc.from, tc.to), tc.want, "%+v", tc)
	}
}

// A node has the plans that choose it in the order of the list.
func TestPlansOf(t *testing.T) {
	s := policy.Settings{Plans: []policy.Plan{{Name: "a"}, {Name: "b", Selector: policy.Selector{{Key: "x", Operator: policy.Exists}}}, {Name: "c"}}}
	names := func(labels map[string]string) (list []string) {
		for _, p := range s.PlansOf(labels) {
			list = append(list, p.Name)
		}
		return list
	}
	assert.DeepEqual(t, names(nil), []string{"a", "c"})
	assert.DeepEqual(t, names(map[string]string{"x": ""}), []string{"a", "b", "c"})
	assert.Equal(t, s.PlanNamed("b"), &s.Plans[1])
	assert.Assert(t, s.PlanNamed("d") == nil)
}
