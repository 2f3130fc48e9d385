package kube

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

const (
	// PauseConfigMap is in the operator's namespace and is written by the kubectl plugin.
	PauseConfigMap = "update-pause"
	// PauseKey is the only key of PauseConfigMap. Its value is Pauses in JSON.
	PauseKey = "pauses.json"
)

// Pauses are the pauses of the fleet and of groups that were set with the kubectl plugin. They are kept apart from the
// policy, so that a GitOps controller that puts the policy back does not end them.
type Pauses struct {
	Fleet  *Pause            `json:"fleet,omitempty"`
	Groups map[string]*Pause `json:"groups,omitempty"`
}

// Pause is a pause of the fleet or of one group.
type Pause struct {
	Reason string `json:"reason"`
	// By is the user who set it, by the name that the API server has for them.
	By string    `json:"by"`
	At time.Time `json:"at"`
	// InFlight says what becomes of nodes that are out of service and have not begun to reboot; empty is policy.Finish.
	InFlight policy.Ending `json:"inFlight,omitempty"`
}

// ReadPauses reads the data of PauseConfigMap. Unknown keys and fields are errors: they may be meant as a pause.
func ReadPauses(data map[string]string) (Pauses, error) {
	var p Pauses
	for key := range data {
		if key != PauseKey {
			return p, errors.Errorf("key %q is not known: pauses are in %s", key, PauseKey)
		}
	}
	text, stands := data[PauseKey]
	if !stands {
		return p, nil
	}
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return Pauses{}, errors.Wrapf(err, "key %s", PauseKey)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Pauses{}, errors.Errorf("key %s: there is text after the JSON object", PauseKey)
	}
	for name, pause := range p.Groups {
		if pause == nil {
			return Pauses{}, errors.Errorf("key %s: the pause of group %q is null", PauseKey, name)
		}
	}
	for _, pause := range append(slices.Collect(maps.Values(p.Groups)), p.Fleet) {
		if pause != nil && !slices.Contains([]policy.Ending{"", policy.Finish, policy.Return}, pause.InFlight) {
			return Pauses{}, errors.Errorf("key %s: inFlight is %q: give %s or %s", PauseKey, pause.InFlight,
				policy.Finish, policy.Return)
		}
	}
	return p, nil
}

// addTo returns settings that have these pauses too. A pause of the policy holds as well, and each reason names the
// ConfigMap that it is from.
func (p *Pauses) addTo(set policy.Settings) policy.Settings {
	set.Pause = merge(set.Pause, p.Fleet)
	set.Groups = slices.Clone(set.Groups)
	for i := range set.Groups {
		g := &set.Groups[i]
		g.Pause = merge(g.Pause, p.Groups[g.Name])
	}
	return set
}

// merge returns the pause that holds where the policy has one and the plugin set one; either may be nil. Nodes in
// flight are returned if one of the two says so.
func merge(inPolicy *policy.Pause, set *Pause) *policy.Pause {
	var reasons []string
	both := &policy.Pause{InFlight: policy.Finish}
	add := func(reason, from string, inFlight policy.Ending) {
		reasons = append(reasons, cmp.Or(reason, "no reason given")+" ("+from+")")
		if inFlight == policy.Return {
			both.InFlight = policy.Return
		}
	}
	if inPolicy != nil {
		add(inPolicy.Reason, "in ConfigMap "+PolicyConfigMap, inPolicy.InFlight)
	}
	if set != nil {
		from := "in ConfigMap " + PauseConfigMap
		if !set.At.IsZero() {
			at := set.At.UTC().Format("2006-01-02 15:04 MST")
			from = fmt.Sprintf("by %s at %s, %s", cmp.Or(set.By, "unknown"), at, from)
		}
		add(set.Reason, from, set.InFlight)
	}
	if reasons == nil {
		return nil
	}
	both.Reason = strings.Join(reasons, "; ")
	return both
}

// unknownGroups returns warnings of pauses of groups that the policy does not have.
func (p *Pauses) unknownGroups(set *policy.Settings) (warnings []string) {
	for _, name := range slices.Sorted(maps.Keys(p.Groups)) {
		if !slices.ContainsFunc(set.Groups, func(g policy.Group) bool { return g.Name == name }) {
			warnings = append(warnings,
				fmt.Sprintf("ConfigMap %s pauses group %q, which the policy doesn't have", PauseConfigMap, name))
		}
	}
	return warnings
}

// pausesOf returns the pauses of PauseConfigMap as the informer has it; nil: there is none. If they can't be read, the
// fleet is paused.
func pausesOf(obj any) Pauses {
	if obj == nil {
		return Pauses{}
	}
	var p Pauses
	err := errors.Errorf("%T is no ConfigMap", obj)
	if config, is := obj.(*corev1.ConfigMap); is {
		p, err = ReadPauses(config.Data)
	}
	if err != nil {
		p.Fleet = &Pause{Reason: fmt.Sprintf("what can't be read counts as a pause: %v: "+
			"correct it, or delete the ConfigMap to end its pauses", err)}
	}
	return p
}
