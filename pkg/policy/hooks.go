package policy

import (
	"fmt"
	"strings"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// Hooks are what others do to a node that is out of service, and that is waited for. Those of one list are asked at
// once.
type Hooks struct {
	// AfterDrain are asked when nothing is left to evict, before the reboot.
	AfterDrain []Hook `yaml:"afterDrain"`
	// BeforeUncordon are asked when the node is well on its new boot, before it takes pods again.
	BeforeUncordon []Hook `yaml:"beforeUncordon"`
}

// Hook has answered when its annotation on the node has the value of the annotation hook-id.
type Hook struct {
	// Name stands in messages and in the annotation that answers the hook.
	Name string `yaml:"name" need:"give each hook one"`
	// Annotation is the key that the hook's own program sets when it is done.
	Annotation string `yaml:"annotation" need:"give a key of your own, such as example.com/done"`
	// Timeout is how long it has.
	Timeout time.Duration `yaml:"timeout" need:"give a duration such as 5m"`
	// OnTimeout is what becomes of the node then. Default Abort.
	OnTimeout OnTimeout `yaml:"onTimeout" words:"abort,ignore"`
}

// OnTimeout is what becomes of a node that waited in vain.
type OnTimeout string

// The ways on.
const (
	// Abort: before the reboot the node is uncordoned and its attempt ends as failed; after it the node stays cordoned and
	// is Lost.
	Abort OnTimeout = "abort"
	// Ignore goes on.
	Ignore OnTimeout = "ignore"
)

func (h Hooks) validate(m *mistakes) {
	validateHooks(m, "hooks.afterDrain", h.AfterDrain)
	validateHooks(m, "hooks.beforeUncordon", h.BeforeUncordon)
}

func validateHooks(m *mistakes, list string, hooks []Hook) {
	seen := map[string]int{}
	for i, hook := range hooks {
		at := fmt.Sprintf("%s[%d]", list, i)
		if first, twice := seen[hook.Name]; hook.Name == "" {
			m.add(at+".name", "is missing: give each hook one")
		} else if twice {
			m.add(at+".name", "is %q, as is %s[%d].name: give each hook a name of its own", hook.Name, list, first)
		} else {
			seen[hook.Name] = i
		}
		if !annotationKey(hook.Annotation) || strings.HasPrefix(hook.Annotation, marker.Prefix) {
			m.add(at+".annotation", "is %q: give a key of your own, such as example.com/done", hook.Annotation)
		}
		m.positive(at+".timeout", hook.Timeout)
	}
}

// annotationKey reports whether a text can be the key of an annotation: a DNS name, a slash, and up to 63 letters,
// digits and -_. between them.
func annotationKey(key string) bool {
	domain, name, ok := strings.Cut(key, "/")
	return ok && domain != "" && len(domain) <= 253 && strings.Trim(domain, "abcdefghijklmnopqrstuvwxyz0123456789-.") == "" &&
		name != "" && len(name) <= 63 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == ""
}

// LongestHook is how long hooks may hold a node up.
func LongestHook(hooks []Hook) time.Duration {
	most := time.Duration(0)
	for _, h := range hooks {
		most = max(most, h.Timeout)
	}
	return most
}
