package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/wave"
)

// looksAgain is within which time hosts have looked again: each does so every half hour, by default.
const looksAgain = time.Hour

// offering is a version while it is found out which hosts list it, and why the others don't.
type offering struct {
	Version
	// opened is when the waves of a release with the default waves reach the first of the hosts that list it, as far
	// as these tell; placed: the place in the waves of at least one of them is known, and unplaced: not of each.
	opened           time.Duration
	placed, unplaced bool
	// carried: a node runs it and wasn't brought to it by this operator. It may have been launched with it, at any
	// moment of the waves.
	carried bool
	// awaits are when the waves reach the hosts that don't list it, after the start of the release. nowhere counts
	// those whose places aren't known, and unknown counts nodes that run a lower version and of which it isn't known
	// whether their hosts list it.
	awaits           []time.Duration
	nowhere, unknown int
}

// look finds out of all hosts why they don't list each of these versions, which are sorted, the newest first.
func look(found []*offering, hosts []host) {
	at := make(map[string]*offering, len(found))
	for _, o := range found {
		at[o.Version.Version] = o
	}
	// higher is how many of the versions are higher than one that runs.
	higher := map[string]int{}
	for i := range hosts {
		h := &hosts[i]
		runs := h.node.OSVersion
		if _, known := higher[runs]; !known {
			n := 0
			for n < len(found) && marker.CompareVersions(found[n].Version.Version, runs) > 0 {
				n++
			}
			higher[runs] = n
		}
		if o := at[runs]; o != nil && !brought(h.node) {
			o.carried = true
		}
		opens, placed := place(h.node)
		listed := make(map[*offering]bool, len(h.listed))
		for _, v := range h.listed {
			if o := at[v]; o != nil {
				listed[o] = true
				o.listedBy(opens, placed)
			}
		}
		if runs == "" {
			continue
		}
		for _, o := range found[:higher[runs]] {
			o.lowerRuns(h, listed[o], opens, placed)
		}
	}
}

// place returns when the default waves reach a node's host; false: its place isn't known.
func place(n *fleet.Node) (opens time.Duration, known bool) {
	seed, err := strconv.ParseUint(n.Marks.Report.WaveSeed, 10, 32)
	return wave.Opens(uint32(seed)), err == nil
}

// brought reports whether the node remembers that this operator brought it to what it runs.
func brought(n *fleet.Node) bool {
	return slices.ContainsFunc(n.Marks.History, func(a marker.Attempt) bool {
		return a.Outcome == marker.OutcomeUpdated && a.Version == n.OSVersion
	})
}

func (o *offering) listedBy(opens time.Duration, placed bool) {
	switch {
	case !placed:
		o.unplaced = true
	case !o.placed, opens < o.opened:
		o.placed, o.opened = true, opens
	}
}

// lowerRuns takes in a node that runs a lower version.
func (o *offering) lowerRuns(h *host, listed bool, opens time.Duration, placed bool) {
	switch lock := h.node.Marks.Report.VersionLock; {
	case listed:
		if h.known && lock != "" && lock != marker.LockLatest && strings.TrimPrefix(lock, "v") != o.Version.Version {
			o.Locked++
		}
	case !h.lacks(o.Version.Version):
		o.unknown++
	case !placed:
		o.Unlisted++
		o.nowhere++
	default:
		o.Unlisted++
		o.awaits = append(o.awaits, opens)
	}
}

// began is when the release began at the latest, if it has the default waves: the wave of a host that lists it is
// open now, and that of the first one was when the version was first seen. What the first one was isn't known where
// the version may have been seen on a node that was launched with it, or on one whose place isn't known.
func (o *offering) began(now time.Time) time.Time {
	began := now.Add(-o.opened)
	if o.Since.IsZero() || o.Since.After(now) {
		return began
	}
	since := o.Since
	if !o.unplaced && !o.carried {
		since = since.Add(-o.opened)
	}
	if since.Before(began) {
		return since
	}
	return began
}

// note says why some hosts don't list the version, or don't go to it. Of a lock it says nothing again that was said
// of as many hosts and a higher version.
func (o *offering) note(now time.Time, locked int) {
	name := o.Version.Version
	if o.Offered > 0 && o.Unlisted > 0 {
		o.Notes = append(o.Notes, o.waves(now))
	}
	if o.Locked > locked {
		o.Notes = append(o.Notes, Messagef("%s %s and %s", count(o.Locked, "host lists", "hosts list"), name,
			oneOr(o.Locked, "does not go to it: its version-lock names another version", "do not go to it: their version-locks name others")))
	}
}

// waves says what the waves have to do with those that don't list the version.
func (o *offering) waves(now time.Time) Message {
	began, waiting := o.began(now), 0
	for _, opens := range o.awaits {
		by := began.Add(opens)
		if now.Sub(by) > looksAgain {
			continue
		}
		waiting++
		if by.After(o.WavesOpenBy) {
			o.WavesOpenBy = by
		}
	}
	of := o.Offered + o.Unlisted + o.unknown
	said := []string{fmt.Sprintf("%d of %s %s offered %s", o.Offered, count(of, "node", "nodes"), oneOr(o.Offered, "is", "are"), o.Version.Version)}
	others := func(n int, one, more string) string {
		whose := oneOr(n, "other's "+one, "others' "+more)
		if n == of-o.Offered {
			return "the " + whose
		}
		return strconv.Itoa(n) + " " + whose
	}
	if waiting > 0 {
		// An upper bound is rounded up.
		by := o.WavesOpenBy.Add(time.Minute - 1).Truncate(time.Minute).UTC().Format("Mon 2006-01-02 15:04 MST")
		said = append(said, others(waiting, "wave opens", "waves open")+" by "+by+" if the release has the default waves")
	}
	if late := len(o.awaits) - waiting; late > 0 {
		said = append(said, others(late, "host doesn't", "hosts don't")+" list it, although the default waves are open by now: "+
			"another repository, a variant that has no such release, or a release with other waves")
	}
	if o.nowhere > 0 {
		said = append(said, others(o.nowhere, "host doesn't", "hosts don't")+" list it, and no seed is known")
	}
	if o.unknown > 0 {
		said = append(said, fmt.Sprintf("of %d it isn't known what their hosts list", o.unknown))
	}
	return Text(strings.Join(said, "; "))
}

func count(n int, one, more string) string { return strconv.Itoa(n) + " " + oneOr(n, one, more) }

func oneOr(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}
