package next

import "time"

// clear is the step of a node that is not the runner's: it is gone, or its label is.
func (v *View) clear() Step {
	step := Step{Kind: Rest}
	for i := range v.Pods {
		p := &v.Pods[i]
		switch {
		case v.of(p):
			// The node may get its label back under the same intent, so the pod's name stays taken until that is over.
			if !p.Over() {
				if end := v.end(p); end.Kind != Rest {
					return end
				}
				continue
			}
			if v.is(p) {
				// As long as the controller waits for what comes of it, which may be an hour. No watch shows when a Node
				// without its label loses the intent.
				step.Again = earliest(step.Again, v.Now.Add(lookAgain))
				continue
			}
			if expires := v.expires(p); v.Now.Before(expires) {
				step.Again = earliest(step.Again, expires)
				continue
			}
			fallthrough
		default:
			if drop := drop(p); drop.Kind != Rest {
				return drop
			}
		}
	}
	return step
}

// of reports whether a pod was made for this very Node, and not for an earlier one of its name.
func (v *View) of(p *Pod) bool { return v.Node != nil && p.NodeUID == v.Node.UID }

// forget is the step for the pods of a node of plans that nothing depends on any more.
func (v *View) forget() Step {
	step := Step{Kind: Rest}
	if v.Node.Unreadable {
		return step
	}
	for i := range v.Pods {
		p := &v.Pods[i]
		if v.of(p) {
			if v.is(p) {
				continue
			}
			if expires := v.expires(p); v.Now.Before(expires) {
				step.Again = earliest(step.Again, expires)
				continue
			}
		}
		if drop := drop(p); drop.Kind != Rest {
			return drop
		}
	}
	return step
}

// expires is when a pod that is over is let go of. Its name stays taken while its intent may still begin, and one that
// failed is there to be looked at.
func (v *View) expires(p *Pod) time.Time {
	expires := v.until(p).Add(keepPod)
	if p.Phase == Failed && p.Ended.Before(v.Now) && p.Ended.Add(keepFailed).After(expires) {
		return p.Ended.Add(keepFailed)
	}
	return expires
}

// drop takes the finalizer off a pod, then deletes it.
func drop(p *Pod) Step {
	switch {
	case p.Held:
		return Step{Kind: Release, Pod: p}
	case !p.Deleting:
		return Step{Kind: Delete, Pod: p}
	}
	return Step{Kind: Rest}
}
