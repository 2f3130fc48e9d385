package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// record is a Node as it stands at one resourceVersion. It can be compared.
type record struct {
	exists        bool
	uid           uint8
	labelled      bool
	unschedulable bool
	ready         bool
	readySince    string
	boot, os      string
	// marks are the operator's annotations, sorted, one a line.
	marks string
}

type decoded struct {
	annotations map[string]string
	marks       marker.Marks
	problems    []marker.Problem
}

// decodings remembers what marks say.
type decodings map[string]*decoded

func (d decodings) of(marks string) *decoded {
	if known, ok := d[marks]; ok {
		return known
	}
	out := &decoded{annotations: map[string]string{}}
	for line := range strings.SplitSeq(marks, "\n") {
		if k, v, ok := strings.Cut(line, "="); ok {
			out.annotations[k] = v
		}
	}
	out.marks, out.problems = marker.Decode(out.annotations)
	d[marks] = out
	return out
}

func written(annotations map[string]string) string {
	lines := make([]string, 0, len(annotations))
	for _, k := range slices.Sorted(maps.Keys(annotations)) {
		lines = append(lines, k+"="+annotations[k])
	}
	return strings.Join(lines, "\n")
}

// in puts marks into terms and leaves out what nothing is decided on: what started which attempt when in the
// history but for a hand that took our cordon away, the words and times of a failure but for the next
// try. TestTermsChangeNoPlan holds that against Plan.
func (m *Model) in(t *terms, marks string) string {
	if marks == "" {
		return ""
	}
	d := m.decodings.of(marks)
	if len(d.problems) > 0 {
		return marks
	}
	c := d.marks
	c.Intent.ID, c.Report.ActiveID = t.ids.name(c.Intent.ID), t.ids.name(c.Report.ActiveID)
	c.Report.ActivatedID = t.ids.name(c.Report.ActivatedID)
	c.Report.BootID, c.Intent.RebootFrom = t.boots.name(c.Report.BootID), t.boots.name(c.Intent.RebootFrom)
	c.Intent.Time, c.Intent.Until = t.moment(c.Intent.Time), t.moment(c.Intent.Until)
	if c.Disruption != nil {
		dis := *c.Disruption
		dis.Since, dis.Returned, dis.Ready = t.moment(dis.Since), nil, t.readies.name(dis.Ready)
		if dis.Soak != nil {
			at := t.moment(*dis.Soak)
			dis.Soak = &at
		}
		c.Disruption = &dis
	}
	if c.Failure != nil {
		f := *c.Failure
		f.Count, f.Message, f.Reason = min(f.Count, 2), "", ""
		f.At, f.RetryAfter = past, t.moment(f.RetryAfter)
		c.Failure = &f
	}
	c.History = handOf(c.History, t)
	if !m.config.Notes {
		c.Waiting = nil
	} else if c.Waiting != nil {
		c.Waiting = &marker.Waiting{Reason: c.Waiting.Reason}
	}
	out := map[string]string{}
	for k, v := range marker.Encode(c) {
		out[string(k)] = v
	}
	for k, v := range marker.EncodeReport(c.Report) {
		out[string(k)] = v
	}
	if c.Paused {
		out[string(marker.KeyPaused)] = c.PausedReason
	}
	if c.Retry {
		out[string(marker.KeyRetry)] = ""
	}
	return written(out)
}

func handOf(h []marker.Attempt, t *terms) []marker.Attempt {
	if len(h) == 0 || h[len(h)-1].Outcome != marker.OutcomeUncordoned {
		return nil
	}
	last := h[len(h)-1]
	if last.Ended = t.moment(last.Ended); last.Ended.Equal(past) {
		return nil
	}
	return []marker.Attempt{{Version: last.Version, Outcome: last.Outcome, Reason: last.Reason, Started: past, Ended: last.Ended}}
}

// recordIn puts a record into terms.
func (m *Model) recordIn(t *terms, r record) record {
	if !r.exists {
		return record{uid: r.uid}
	}
	before := r
	// The order of names depends on the record alone: what was planned from it stays true while it stands.
	r.boot = t.boots.name(r.boot)
	r.readySince = t.readies.name(r.readySince)
	r.marks = m.in(t, r.marks)
	if m.translated != nil {
		m.translated(before, r)
	}
	return r
}

// view is kube.View of a record, but for name and UID.
func (m *Model) view(r record) fleet.Node {
	d := m.decodings.of(r.marks)
	n := fleet.Node{ResourceVersion: fresh, Unschedulable: r.unschedulable, Ready: r.ready, ReadySince: r.readySince,
		BootID: r.boot, OSVersion: r.os, Marks: d.marks, Problems: d.problems, PassedOver: true}
	if r.labelled {
		n.Interface = fleet.InterfaceUpdateAPI
	}
	return n
}

// applied returns annotations after a patch.
func applied(annotations map[string]string, diff map[marker.Key]*string) map[string]string {
	after := maps.Clone(annotations)
	for k, v := range diff {
		if v == nil {
			delete(after, string(k))
		} else {
			after[string(k)] = *v
		}
	}
	return after
}

func (m *Model) describe(r record) string {
	if !r.exists {
		return "no Node"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "labelled=%v unschedulable=%v ready=%v/%s kubelet=%s/%s", r.labelled, r.unschedulable, r.ready, r.readySince, r.boot, r.os)
	for line := range strings.SplitSeq(r.marks, "\n") {
		k, v, _ := strings.Cut(strings.TrimPrefix(line, marker.Prefix), "=")
		switch marker.Key(marker.Prefix + k) {
		case marker.KeyOperatorVersion, marker.KeyProtocol, marker.KeyActionActive, marker.KeyUpdateAvailable, marker.KeyIntentTime:
		default:
			if k != "" {
				fmt.Fprintf(&b, " %s=%s", k, v)
			}
		}
	}
	return b.String()
}
