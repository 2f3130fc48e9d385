package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pkg/errors"
	"k8s.io/client-go/kubernetes"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/file"
)

// pauseFleet pauses the fleet, or a group. A pause by the same user for the same reason stays as it is and keeps its
// time.
func (p *plugin) pauseFleet(ctx context.Context, client kubernetes.Interface, o *pauseOptions) error {
	if err := p.checkGroup(ctx, client, o.group); err != nil {
		return err
	}
	wanted := p.newPause(ctx, client, o.reason)
	return p.changePause(ctx, client, o, "paused", func(before *kube.Pause) *kube.Pause {
		pause := *wanted
		pause.InFlight = o.inFlight
		if before == nil {
			return &pause
		}
		if pause.InFlight == "" {
			pause.InFlight = before.InFlight
		}
		if before.Reason == pause.Reason && before.By == pause.By && before.InFlight == pause.InFlight {
			return before
		}
		return &pause
	})
}

// resumeFleet ends the pause of the fleet, or of a group, and warns if the policy has one too.
func (p *plugin) resumeFleet(ctx context.Context, client kubernetes.Interface, o *pauseOptions) error {
	if err := p.changePause(ctx, client, o, "resumed", func(*kube.Pause) *kube.Pause { return nil }); err != nil {
		return err
	}
	pause, err := p.policyPause(ctx, client, o.group)
	if err != nil || pause == nil {
		return err
	}
	warn(p.ErrOut, []string{fmt.Sprintf("the policy has a pause too (%s): to end it, take it out of ConfigMap %s",
		pause.Reason, kube.PolicyConfigMap)})
	return nil
}

// changePause replaces the pause of the fleet, or of a group, by the one that change returns, and prints what was done.
// Nil is no pause; the same pointer changes nothing.
func (p *plugin) changePause(ctx context.Context, client kubernetes.Interface, o *pauseOptions, did string,
	change func(before *kube.Pause) *kube.Pause) error {
	key := configKey{p.namespace(), kube.PauseConfigMap, kube.PauseKey}
	changed, err := key.change(ctx, client, &o.dryRun, func(data map[string]string) (*string, error) {
		pauses, err := kube.ReadPauses(data)
		if err != nil {
			return nil, errors.WithMessagef(err, "ConfigMap %s/%s can't be read, which pauses everything; "+
				"correct it, or delete it to end its pauses", key.namespace, key.name)
		}
		before := pauses.Fleet
		if o.group != "" {
			before = pauses.Groups[o.group]
		}
		after := change(before)
		switch {
		case after == before:
			return nil, nil
		case o.group == "":
			pauses.Fleet = after
		case after == nil:
			delete(pauses.Groups, o.group)
		case pauses.Groups == nil:
			pauses.Groups = map[string]*kube.Pause{o.group: after}
		default:
			pauses.Groups[o.group] = after
		}
		text, err := json.MarshalIndent(pauses, "", "  ")
		return new(string(text)), err
	})
	if err != nil {
		return err
	}
	object := "configmap/" + kube.PauseConfigMap
	if o.group != "" {
		object += " group " + o.group
	}
	if !changed {
		did = "unchanged"
	}
	p.did(object, did, &o.dryRun)
	return nil
}

// checkGroup returns an error if the policy does not have the group. If the policy has a mistake, its groups are not
// known, and a warning is printed.
func (p *plugin) checkGroup(ctx context.Context, client kubernetes.Interface, group string) error {
	if group == "" {
		return nil
	}
	config, err := p.policyConfigMap(ctx, client)
	if err != nil {
		return err
	}
	set, mistake := decodePolicy(config)
	if mistake != nil {
		warn(p.ErrOut, []string{fmt.Sprintf("the policy has a mistake, so it is not known whether it has a group %q: %v",
			group, mistake)})
		return nil
	}
	var names []string
	for _, g := range set.Groups {
		names = append(names, g.Name)
	}
	if !slices.Contains(names, group) {
		return errors.Errorf("group %q is not in the policy: it has %q", group, names)
	}
	return nil
}

// policyPause returns the pause that the policy has of the fleet, or of a group; nil if it has none.
func (p *plugin) policyPause(ctx context.Context, client kubernetes.Interface, group string) (*policy.Pause, error) {
	config, err := p.policyConfigMap(ctx, client)
	if err != nil || config == nil {
		return nil, err
	}
	if group == "" {
		return file.Pause([]byte(config.Data[kube.PolicyKey])), nil
	}
	// A group's pause holds only in a policy without a mistake.
	if set, mistake := decodePolicy(config); mistake == nil {
		for _, g := range set.Groups {
			if g.Name == group {
				return g.Pause, nil
			}
		}
	}
	return nil, nil
}
