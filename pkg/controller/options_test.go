package controller

import (
	"testing"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// MAX_CONCURRENT_UPDATE is the default of maxUnavailable, as users of both older operators have it, and no other setting
// has a default that can be changed.
func TestMaxConcurrentUpdate(t *testing.T) {
	for text, want := range map[string]policy.Limit{"": policy.Count(1), "4": policy.Count(4), "unlimited": policy.Unlimited} {
		o := DefaultOptions()
		o.NodeName, o.PodName, o.MaxConcurrentUpdate = "n", "p", text
		assert.NilError(t, o.Validate())
		set, err := o.defaults()
		assert.NilError(t, err)
		assert.Equal(t, set.MaxUnavailable, want)
	}
	o := DefaultOptions()
	o.NodeName, o.PodName, o.MaxConcurrentUpdate = "n", "p", "many"
	assert.Error(t, o.Validate(), `MAX_CONCURRENT_UPDATE in the environment: "many" is no limit: give a number, a percentage such as 25%, or unlimited`)
}
