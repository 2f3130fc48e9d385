package controller

import (
	"context"
	"time"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/file"
)

// Plan returns what would be done now. Only a leader knows.
func (c *Controller) Plan(ctx context.Context) (plan.Plan, error) {
	t, err := c.leading()
	if err != nil {
		return plan.Plan{}, err
	}
	return t.Plan(ctx)
}

// PlanBy returns what would be done now if the policy were that of a file. An error is file.Mistakes if the file has
// any.
func (c *Controller) PlanBy(ctx context.Context, content []byte) (plan.Plan, error) {
	t, err := c.leading()
	if err != nil {
		return plan.Plan{}, err
	}
	set, err := file.Decode(content, c.defaults, time.LoadLocation)
	if err != nil {
		return plan.Plan{}, err
	}
	return t.PlanBy(ctx, set)
}

// leading returns the current term.
func (c *Controller) leading() (*Term, error) {
	if err := c.Ready(); err != nil {
		return nil, err
	}
	t := c.term.Load()
	if t == nil {
		return nil, errors.New("this process does not lead; ask the pod that the Lease " + kube.LeaseName + " names")
	}
	return t, nil
}

// Plan returns what the term would do now, without doing it.
func (t *Term) Plan(ctx context.Context) (plan.Plan, error) {
	s, set, err := t.gather(ctx)
	if err != nil {
		return plan.Plan{}, err
	}
	out := planner.Show(s, set)
	out.Rollouts = t.remembered()
	switch {
	case t.c.Policies.Current().Stands:
		out.Policy = "ConfigMap " + kube.PolicyConfigMap
	case s.NoPolicy:
		out.Policy = "no policy; the ConfigMap " + kube.PolicyConfigMap + " is gone"
	default:
		out.Policy = "the defaults; there is no ConfigMap " + kube.PolicyConfigMap
	}
	return out, nil
}

// PlanBy returns what the term would do now by a policy that is not in force, without doing it. Whatever that names is
// not asked: of other alerts than those in force it takes it that none stands, and says so.
func (t *Term) PlanBy(ctx context.Context, set policy.Settings) (plan.Plan, error) {
	s, _, err := t.gather(ctx)
	if err != nil {
		return plan.Plan{}, err
	}
	given := t.c.Policies.Current().With(set)
	set = given.Settings
	s.PolicyProblem, s.NoPolicy, s.PolicyUnrecorded, s.PolicyWarnings = "", false, false, given.Warnings
	if a := set.Alerts; a.URL != "" && (s.Alerts == nil || s.Alerts.URL != a.URL || s.Alerts.Query != a.Query) {
		s.Alerts = &fleet.Alerts{At: s.Now, URL: a.URL, Query: a.Query}
		s.PolicyWarnings = append(s.PolicyWarnings, "nothing starts while alerts stand, and those of a policy that is not in force were not asked for: this plan takes it that none does")
	}
	out := planner.Show(s, set)
	out.Policy = "the given file"
	return out, nil
}
