package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// Hooks are what others do to a node that is out of service, and that is waited for. Those of one list are asked at once.
type Hooks struct {
	// AfterDrain are asked when nothing is left to evict, before the reboot.
	AfterDrain []Hook
	// BeforeUncordon are asked when the node is well on its new boot, before it takes pods again.
	BeforeUncordon []Hook
}

// Hook has answered when its annotation on the node has the value of the annotation hook-id.
type Hook struct {
	// Name is for people.
	Name string
	// Annotation is the key that whoever does the work sets.
	Annotation string
	// Timeout is how long it has.
	Timeout time.Duration
	// OnTimeout is what becomes of the node then. Default Abort.
	OnTimeout OnTimeout
}

// OnTimeout is what becomes of a node that waited in vain.
type OnTimeout string

// The ways on.
const (
	// Abort: before the reboot the node is given back, and it is counted; after it the node stays cordoned, and is Lost.
	Abort OnTimeout = "abort"
	// Ignore goes on.
	Ignore OnTimeout = "ignore"
)

// What a hook-id begins with.
const (
	afterDrain     = "after-drain."
	beforeUncordon = "before-uncordon."
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

// annotationKey tells if a text can be the key of an annotation: a DNS name, a slash, and up to 63 letters, digits
// and -_. between them.
func annotationKey(key string) bool {
	domain, name, ok := strings.Cut(key, "/")
	return ok && domain != "" && len(domain) <= 253 && strings.Trim(domain, "abcdefghijklmnopqrstuvwxyz0123456789-.") == "" &&
		name != "" && len(name) <= 63 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == ""
}

// longestHook is how long hooks may hold a node up.
func longestHook(hooks []Hook) time.Duration {
	most := time.Duration(0)
	for _, h := range hooks {
		most = max(most, h.Timeout)
	}
	return most
}

// unanswered returns the first hook that is still waited for, and the first that must not be waited for any longer
// and may not be ignored; nil if there is none. Hooks that weren't asked yet are both waited for and in time.
func (p *planner) unanswered(n *fleet.Node, hooks []Hook) (waiting, late *Hook) {
	asked := n.Marks.Disruption.Asked
	for i := range hooks {
		h := &hooks[i]
		switch {
		case asked == nil:
			return h, nil
		case slices.Contains(n.HooksAnswered, h.Annotation):
		case !p.past(n, *asked, h.Timeout):
			if waiting == nil {
				waiting = h
			}
		case h.OnTimeout == Abort && late == nil:
			late = h
		}
	}
	return waiting, late
}

// hooked settles a node that hooks of a stage hold up; false: nothing does.
func (p *planner) hooked(n *fleet.Node, phase intent.Phase, stage string, hooks []Hook) bool {
	if len(hooks) == 0 {
		return false
	}
	if !strings.HasPrefix(n.Marks.HookID, stage) || n.Marks.Disruption.Asked == nil {
		c := keep(n)
		at := p.Now.Truncate(time.Millisecond)
		c.Marks.HookID, c.Marks.Disruption.Asked = stage+newID(n, p.Now), &at
		message := awaited(&hooks[0], at).String()
		c.Marks.Waiting = &marker.Waiting{Reason: string(ReasonHookAwaited), Message: marker.Clip(message, marker.MaxMessage)}
		p.step(n, phase, intent.ActNote, ReasonHookAwaited, message, c)
		return true
	}
	waiting, late := p.unanswered(n, hooks)
	switch {
	case late != nil && stage == afterDrain:
		p.giveBack(n, phase, ReasonHookFailed, silent(late), true)
	case late != nil:
		p.wait(n, intent.PhaseLost, ReasonLost, say("{s} is well, but {s2}; it stays cordoned until that answers, or the node is deleted or its label removed").
			with(n.Name, silent(late)))
	case waiting != nil:
		p.wait(n, phase, ReasonHookAwaited, awaited(waiting, *n.Marks.Disruption.Asked))
	default:
		return false
	}
	return true
}

func awaited(h *Hook, since time.Time) Sentence {
	return say("hook {s} is awaited since {t}: the annotation {s2} is to have the value of {s3}").with(h.Name, h.Annotation, string(marker.KeyHookID)).
		at(since).over(since.Add(h.Timeout)).naming()
}

func silent(h *Hook) string {
	return "hook " + h.Name + " has not answered within " + h.Timeout.String()
}

// hookLate tells if a node that is well must not be uncordoned, because a hook was silent for too long.
func (p *planner) hookLate(n *fleet.Node) bool {
	if !strings.HasPrefix(n.Marks.HookID, beforeUncordon) || n.Marks.Disruption.Asked == nil {
		return false
	}
	_, late := p.unanswered(n, p.place(n).rules.Hooks.BeforeUncordon)
	return late != nil
}

// unhook ends what is asked of hooks.
func (c *Change) unhook() {
	c.Marks.HookID = ""
	if c.Marks.Disruption != nil {
		c.Marks.Disruption.Asked = nil
	}
}
