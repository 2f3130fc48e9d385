package kube

import (
	"reflect"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
)

// sameView reports whether nothing that a decision depends on has changed; a new resourceVersion alone, as
// every status heartbeat brings one, is no reason for another pass.
func sameView(a, b fleet.Node) bool {
	a.ResourceVersion, b.ResourceVersion = "", ""
	return reflect.DeepEqual(a, b)
}
