package kube

import (
	"testing"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// unwatched returns a Policy without watches, which the test gives objects to.
func unwatched(t *testing.T) *Policy {
	t.Helper()
	informer := func(name string) Informer { return ConfigMapInformer(fake.NewClientset(), "bottlerocket", name) }
	p, err := NewPolicy(PolicyConfig{Policy: informer(PolicyConfigMap), Pauses: informer(PauseConfigMap), Acknowledged: informer(AcknowledgedConfigMap), PlanTargets: informer(PlanTargetsConfigMap),
		Defaults: policy.DefaultSettings(), Changed: func() {}})
	assert.NilError(t, err)
	return p
}

func pauseMap(text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: PauseConfigMap}, Data: map[string]string{PauseKey: text}}
}

const (
	groups = "version: 1\ngroups:\n- {name: canary, nodeSelector: {}}\n- {name: rest, nodeSelector: {}, pause: {reason: stocktaking, inFlight: return}}\n"
	moving = `{"reason": "moving", "by": "ann", "at": "2026-01-05T12:00:00Z"}`
)

// A pause that was set with the plugin holds whatever the policy is, and the policy's own pause holds too. The reason
// names the ConfigMap, who set the pause and when (S6).
func TestPausesBesideThePolicy(t *testing.T) {
	inPolicy, byAnn := " (in ConfigMap update-policy)", "moving (by ann at 2026-01-05 12:00 UTC, in ConfigMap update-pause)"
	for _, tc := range []struct {
		name, policy, pauses string
		fleet, canary, rest  string
		fleetReturns         bool
	}{
		{"none", groups, `{}`, "", "", "stocktaking" + inPolicy, false},
		{"of the fleet", groups, `{"fleet": ` + moving + `}`, byAnn, "", "stocktaking" + inPolicy, false},
		{"of the fleet, without a policy", "", `{"fleet": ` + moving + `}`, byAnn, "", "", false},
		{"beside a mistake", "version: 2\n", `{"fleet": ` + moving + `}`, byAnn, "", "", false},
		{"both", "version: 1\npause: {reason: stocktaking}\n", `{"fleet": ` + moving + `}`, "stocktaking" + inPolicy + "; " + byAnn, "", "", false},
		{"both, one returns what is in flight", "version: 1\npause: {reason: stocktaking, inFlight: return}\n", `{"fleet": ` + moving + `}`, "stocktaking" + inPolicy + "; " + byAnn, "", "", true},
		{"both, the other returns it", "version: 1\npause: {reason: stocktaking}\n", `{"fleet": {"reason": "", "by": "", "at": "2026-01-05T12:00:00Z", "inFlight": "return"}}`,
			"stocktaking" + inPolicy + "; no reason given (by unknown at 2026-01-05 12:00 UTC, in ConfigMap update-pause)", "", "", true},
		{"of groups", groups, `{"groups": {"canary": ` + moving + `, "rest": ` + moving + `}}`, "", byAnn, "stocktaking" + inPolicy + "; " + byAnn, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := unwatched(t)
			p.receive(nil)
			if tc.policy != "" {
				p.receive(policyMap(map[string]string{PolicyKey: tc.policy}))
			}
			p.receivePauses(pauseMap(tc.pauses))
			said := func(pause *policy.Pause) string {
				if pause == nil {
					return ""
				}
				return pause.Reason
			}
			s := p.Current()
			assert.Equal(t, said(s.Settings.Pause), tc.fleet)
			assert.Equal(t, s.Settings.Pause != nil && s.Settings.Pause.InFlight == policy.Return, tc.fleetReturns)
			if len(s.Settings.Groups) == 2 {
				assert.Equal(t, said(s.Settings.Groups[0].Pause), tc.canary)
				assert.Equal(t, said(s.Settings.Groups[1].Pause), tc.rest)
				if tc.rest != "" {
					assert.Equal(t, s.Settings.Groups[1].Pause.InFlight, policy.Return)
				}
			}
			// A policy that is gone leaves it in force.
			if p.receive(nil); tc.fleet != "" && tc.policy != "" {
				assert.Assert(t, p.Current().Required().Settings.Pause != nil)
			}
			// The object is gone, and so are its pauses.
			p.receivePauses(nil)
			assert.Assert(t, p.Current().Settings.Pause == nil)
		})
	}
}

// A pause of a group that the policy doesn't have is a warning, also for a policy that is only planned by.
func TestPauseOfAnUnknownGroup(t *testing.T) {
	p := unwatched(t)
	p.receive(policyMap(map[string]string{PolicyKey: groups}))
	p.receivePauses(pauseMap(`{"groups": {"canary": ` + moving + `, "canaries": ` + moving + `}}`))
	assert.DeepEqual(t, p.Current().Warnings, []string{`ConfigMap update-pause pauses group "canaries", which the policy doesn't have`})
	assert.Equal(t, len(p.Current().With(policy.DefaultSettings()).Warnings), 2, "the defaults have neither group")
}

// What can't be read pauses the fleet, and says why (S6, S8).
func TestUnreadablePauses(t *testing.T) {
	for _, tc := range []struct {
		data map[string]string
		says string
	}{
		{map[string]string{PauseKey: ""}, "key pauses.json: EOF"},
		{map[string]string{PauseKey: "fleet: {}"}, "key pauses.json: invalid character"},
		{map[string]string{PauseKey: `{"fleets": ` + moving + `}`}, `key pauses.json: json: unknown field "fleets"`},
		{map[string]string{PauseKey: `{} {}`}, "key pauses.json: there is text after the JSON object"},
		{map[string]string{PauseKey: `{"groups": {"canary": null}}`}, `key pauses.json: the pause of group "canary" is null`},
		{map[string]string{PauseKey: `{"fleet": {"reason": "x", "inFlight": "stop"}}`}, `key pauses.json: inFlight is "stop": give finish or return`},
		{map[string]string{PauseKey: `{}`, "fleet": "x"}, `key "fleet" is not known: pauses are in pauses.json`},
	} {
		_, err := ReadPauses(tc.data)
		assert.ErrorContains(t, err, tc.says)
		p := unwatched(t)
		p.receive(nil)
		p.receivePauses(&corev1.ConfigMap{Data: tc.data})
		assert.Equal(t, p.Current().Settings.Pause.Reason, "what can't be read counts as a pause: "+err.Error()+
			": correct it, or delete the ConfigMap to end its pauses (in ConfigMap update-pause)")
	}
}
