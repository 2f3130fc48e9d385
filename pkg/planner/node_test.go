package planner_test

import (
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// One node by itself, beside another that takes its pods: each phase with what can happen in it.
func TestOneNode(t *testing.T) {
	history := func(ago time.Duration, o marker.Outcome) change {
		return func(n *fleet.Node) {
			n.Marks.History = []marker.Attempt{{Outcome: o, Ended: now.Add(-ago)}}
		}
	}
	for _, tc := range []struct {
		name    string
		changes []change
		want    string
	}{
		// New and Idle.
		{"a labelled node is taken into care", []change{with(func(n *fleet.Node) { n.Marks = marker.Marks{} })}, "New Stabilize Managed"},
		{"nothing is offered", nil, "UpToDate wait UpToDate"},
		{"what runs is offered", []change{offered(v1)}, "UpToDate wait UpToDate"},
		{"another build of what runs is not newer", []change{offered(v1 + "+b")}, "UpToDate wait UpToDate"},
		{"a lower version is never a target", []change{offered("1.0.0")}, "Waiting wait LowerVersionOffered"},
		{"also one that failed here", []change{offered("1.0.0"), failedOnce(time.Hour, "1.0.0")}, "Waiting wait LowerVersionOffered"},
		{"an update is offered", []change{offered(v2)}, "Waiting Stage UpdateAvailable"},
		{"also to an agent of the first protocol", []change{offered(v2), with(func(n *fleet.Node) { n.Marks.Report.Protocol = 1 })}, "Waiting Stage UpdateAvailable"},
		{"a paused node starts nothing (S6)", []change{offered(v2), paused}, "Waiting wait Paused"},
		{"no agent, though nothing is to be done: BottlerocketUpdateAgentsSilent rests on it", []change{agentAway}, "Waiting wait AgentNotReady"},
		{"no agent, no start", []change{offered(v2), agentAway}, "Waiting wait AgentNotReady"},
		{"an agent that hasn't answered yet", []change{offered(v2), unanswered}, "Waiting wait AgentNotReady"},
		{"an agent that doesn't say what runs", []change{offered(v2), with(func(n *fleet.Node) { n.Marks.Report.Current = "" })}, "Waiting wait AgentNotReady"},
		{"two updaters on one node", []change{offered(v2), answers(marker.StateError, "x"), because(marker.ReasonAnotherUpdater)}, "Waiting wait AnotherUpdater"},
		{"an update that its Node tells nothing of", []change{answers(marker.StateError, "x"), because(marker.ReasonUnrequestedActivation)}, "Waiting wait AnotherUpdater"},
		{"an agent in trouble", []change{offered(v2), answers(marker.StateError, "x")}, "Waiting wait HostError"},
		{"a kubelet that isn't Ready", []change{offered(v2), notReady}, "Waiting wait NodeNotReady"},
		{"a version that failed here waits", []change{offered(v2), failedOnce(time.Minute, v2)}, "Waiting wait BackingOff"},
		{"one lower than a failed one waits too", []change{offered(v2), failedOnce(time.Minute, v3)}, "Waiting wait BackingOff"},
		{"one newer than all that failed goes at once", []change{offered(v3), failedOnce(time.Minute, v1, v2)}, "Waiting Stage UpdateAvailable"},
		{"after the wait it goes again", []change{offered(v2), failedOnce(0, v2)}, "Waiting Stage UpdateAvailable"},
		{"a wait that a wrong clock wrote is cut", []change{offered(v2), failedOnce(25*time.Hour, v2)}, "Waiting wait ClockCorrected"},
		{"a user uncordoned it", []change{offered(v2), history(time.Minute, marker.OutcomeUncordoned)}, "Waiting wait RecentlyUncordoned"},
		{"not for ever", []change{offered(v2), history(10*time.Minute, marker.OutcomeUncordoned)}, "Waiting Stage UpdateAvailable"},
		{"not by a time implausibly far away", []change{offered(v2), history(-25*time.Hour, marker.OutcomeUncordoned)}, "Waiting Stage UpdateAvailable"},
		{"a human's wish to forget a failure", []change{offered(v2), failedOnce(time.Hour, v2), with(func(n *fleet.Node) { n.Marks.Retry = true })}, "Waiting Retry RetryWanted"},
		{"marks that can't be read", []change{offered(v2), with(func(n *fleet.Node) { n.Problems = []marker.Problem{{Key: marker.KeyFailure, Why: "x"}} })}, "Unreadable wait AnnotationUnreadable"},
		{"an update that its Node tells nothing of is undone by a person's word", []change{answers(marker.StateError, "x"), because(marker.ReasonUnrequestedActivation), with(func(n *fleet.Node) { n.Marks.Retry = true })}, "Waiting Reset RetryWanted"},
		{"which is no way out of another boot", []change{answers(marker.StateError, "x"), because(marker.ReasonAnotherUpdater), with(func(n *fleet.Node) { n.Marks.Retry = true })}, "Waiting Retry RetryWanted"},
		{"a host without the Update API", []change{offered(v2), answers(marker.StateError, "x"), because(marker.ReasonInterfaceUnsupported)}, "Waiting wait InterfaceUnsupported"},
		{"what isn't Bottlerocket gets no agent", []change{agentAway, with(func(n *fleet.Node) { n.OSVersion = "" })}, "Waiting wait InterfaceUnsupported"},
		{"an interface that isn't spoken", []change{offered(v2), with(func(n *fleet.Node) { n.Interface = "3.0.0" })}, "Waiting wait InterfaceUnsupported"},

		// Preparing.
		{"staging", []change{preparing}, "Staging wait Staging"},
		{"staging failed", []change{preparing, answers(marker.StateError, "x")}, "Staging Abandon StagingFailed"},
		{"paused while staging", []change{preparing, paused}, "Staging Abandon Paused"},
		{"the offer is withdrawn while staging", []change{preparing, offered("")}, "Staging Abandon OfferWithdrawn"},
		{"an agent's error on a withdrawn offer is no failure", []change{preparing, offered(v3), answers(marker.StateError, "not offered")}, "Staging Abandon OfferWithdrawn"},
		{"staging takes too long", []change{preparing, issued(time.Hour)}, "Staging Abandon StagingDeadline"},
		{"staging, and the agent is away", []change{preparing, agentAway}, "Staging wait AgentNotReady"},
		{"a deadline doesn't fire at first sight", []change{preparing, issued(time.Hour), firstLook}, "Staging wait Staging"},
		{"an answer beats the deadline", []change{prepared, issued(time.Hour)}, "Staged Confirm Confirming"},
		{"staged lately", []change{prepared, issued(10 * time.Minute)}, "Staged Cordon Cordoned"},
		{"staged for so long that its repository may be gone (issue 14, 1)", []change{prepared, issued(10*time.Minute + time.Second)}, "Staged Confirm Confirming"},
		{"asked whether that stands", []change{confirming}, "Staging wait Confirming"},
		{"what the agent said before is no answer", []change{confirming, with(func(n *fleet.Node) { n.Marks.Report.Message = "x" })}, "Staging wait Confirming"},
		{"nor is that it is busy", []change{confirming, answers(marker.StateBusy, "")}, "Staging wait Confirming"},
		{"asked a while ago, and confirmed", []change{confirming, answers(marker.StateReady, ""), issued(30 * time.Minute)}, "Staged Cordon Cordoned"},
		{"confirmed long ago", []change{confirming, answers(marker.StateReady, ""), issued(31 * time.Minute)}, "Staged Confirm Confirming"},
		{"an agent that doesn't know the question is not asked", []change{prepared, issued(time.Hour), with(func(n *fleet.Node) { n.Marks.Report.Protocol = 1 })}, "Staged Cordon Cordoned"},
		{"the repository is down, and the host is asked again", []change{confirming, answers(marker.StateBusy, "no route")}, "Staging wait HostError"},
		{"what is staged is gone: it goes on serving", []change{confirming, answers(marker.StateError, "x")}, "Staging Abandon StagingFailed"},
		{"that takes too long", []change{confirming, issued(time.Hour)}, "Staging Abandon StagingDeadline"},
		{"it stands", []change{confirming, answers(marker.StateReady, "")}, "Staged Cordon Cordoned"},
		{"a beginning implausibly far in the future has gone by", []change{preparing, issued(-25 * time.Hour)}, "Staging Abandon StagingDeadline"},

		// Prepared.
		{"staged and free to go", []change{prepared}, "Staged Cordon Cordoned"},
		{"already on target, no slot", []change{prepared, with(func(n *fleet.Node) { n.Marks.Report.Current, n.Marks.Report.Available = v2, "" })}, "Staged Stabilize AlreadyOnTarget"},
		{"a newer version came meanwhile", []change{prepared, offered(v3)}, "Staged Stabilize OfferWithdrawn"},
		{"staged and paused", []change{prepared, paused}, "Staged wait Paused"},
		{"staged without an agent", []change{prepared, agentAway}, "Staged wait AgentNotReady"},
		{"staged on a node that isn't Ready", []change{prepared, notReady}, "Staged wait NodeNotReady"},
		{"the witnesses don't name the same boot", []change{prepared, with(func(n *fleet.Node) { n.BootID = "b2" })}, "Staged wait BootUnconfirmed"},
		{"the kubelet names no boot", []change{prepared, with(func(n *fleet.Node) { n.BootID, n.Marks.Report.BootID = "", "" })}, "Staged wait BootUnconfirmed"},
		{"cordoned by a user it goes all the same", []change{prepared, cordoned}, "Staged Cordon Cordoned"},

		// Draining.
		{"a drain begins", []change{draining}, "Draining Drain Draining"},
		{"between two passes", []change{draining, drain(fleet.Drain{Remaining: 1, Waiting: "x", Next: now.Add(time.Second)})}, "Draining wait Draining"},
		{"the next pass is due", []change{draining, drain(fleet.Drain{Remaining: 1, Waiting: "x", Next: now})}, "Draining Drain Draining"},
		{"a budget blocks", []change{draining, drain(fleet.Drain{Remaining: 1, Blocked: "x", Next: now.Add(time.Second)})}, "Draining wait EvictionBlocked"},
		{"the pass itself fails, and that is not drained (S2)", []change{draining, drain(fleet.Drain{Failed: "x", Next: now.Add(time.Second)})}, "Draining wait DrainFailing"},
		{"drained", []change{draining, drain(fleet.Drain{})}, "Draining Reboot RebootRequested"},
		{"drained beats the deadline", []change{draining, drain(fleet.Drain{}), cordonedSince(time.Hour)}, "Draining Reboot RebootRequested"},
		{"drained without an agent", []change{draining, drain(fleet.Drain{Next: now.Add(time.Second)}), agentAway}, "Draining wait AgentNotReady"},
		{"the agent has been away for long", []change{draining, agentLost(2 * time.Minute)}, "Draining Abandon AgentLost"},
		{"away for less it may come back", []change{draining, agentLost(2*time.Minute - time.Second)}, "Draining Drain Draining"},
		{"drained, no limit of evictions is in the way", []change{draining, drain(fleet.Drain{}), agentAway, with(func(n *fleet.Node) { n.Evicted = 1000 })}, "Draining Drain AgentNotReady"},
		{"of a node that isn't Ready the agent is none of the causes", []change{draining, agentLost(time.Hour), notReady}, "Draining Drain Draining"},
		{"and not at first sight", []change{draining, agentLost(time.Hour), firstLook}, "Draining Drain Draining"},
		{"asked to reboot, the agent has been away for long", []change{rebooting, agentLost(2 * time.Minute)}, "Rebooting Abandon AgentLost"},
		{"what has begun is awaited", []change{busy, agentLost(time.Hour)}, "Rebooting wait Rebooting"},
		{"a drain that can't finish never leads to a reboot", []change{draining, drain(fleet.Drain{Remaining: 1}), cordonedSince(time.Hour)}, "Draining Abandon DrainDeadline"},
		{"a new process evicts nothing when that is over", []change{draining, cordonedSince(time.Hour), firstLook}, "Draining wait Draining"},
		{"and abandons the attempt", []change{draining, drain(fleet.Drain{Remaining: 1}), cordonedSince(time.Hour), with(func(n *fleet.Node) { n.WatchedSince = now })}, "Draining Abandon DrainDeadline"},
		{"a user took the cordon away", []change{draining, schedulable}, "Draining Abandon UncordonedByUser"},
		{"paused while draining", []change{draining, paused}, "Draining Abandon Paused"},
		{"the stage is gone", []change{draining, answers(marker.StateError, "x")}, "Draining Abandon StagingFailed"},
		{"the offer is withdrawn while draining", []change{draining, offered(v3)}, "Draining Abandon OfferWithdrawn"},
		{"another's reboot counts", []change{draining, with(func(n *fleet.Node) { n.BootID = "b2" })}, "Draining Reboot RebootedEarly"},
		{"no boot at all is no reboot (S2)", []change{draining, with(func(n *fleet.Node) { n.BootID = "" })}, "Draining Drain Draining"},

		// Rebooting.
		{"asked to reboot", []change{rebooting}, "Rebooting wait Rebooting"},
		{"asked to reboot, and the agent is away", []change{rebooting, agentAway}, "Rebooting wait AgentNotReady"},
		{"paused before busy", []change{rebooting, paused}, "Rebooting Abandon Paused"},
		{"uncordoned before busy", []change{rebooting, schedulable}, "Rebooting Abandon UncordonedByUser"},
		{"never begun", []change{rebooting, issued(time.Hour)}, "Rebooting Abandon RebootDeadline"},
		{"busy is not abandoned, by a pause", []change{busy, paused}, "Rebooting wait Rebooting"},
		{"nor by a human's hand", []change{busy, schedulable}, "Rebooting wait Rebooting"},
		{"nor by the deadline: Lost", []change{busy, issued(30 * time.Minute)}, "Lost wait Lost"},
		{"and not before", []change{busy, issued(30*time.Minute - time.Second)}, "Rebooting wait Rebooting"},
		{"not at first sight", []change{busy, issued(time.Hour), firstLook}, "Rebooting wait Rebooting"},
		{"rebooted, and the agent never says so", []change{rebooting, issued(time.Hour), with(func(n *fleet.Node) { n.BootID = "b2" })}, "Lost wait Lost"},

		// Returning.
		{"back on the target by both witnesses (S7)", []change{back(v2)}, "Returning Return Uncordoned"},
		{"late, but back", []change{back(v2), issued(5 * time.Hour)}, "Returning Return Uncordoned"},
		{"the kubelet shows the old boot", []change{back(v2), with(func(n *fleet.Node) { n.BootID = "b1" })}, "Returning wait Returning"},
		{"the kubelet shows another version", []change{back(v2), with(func(n *fleet.Node) { n.OSVersion = v1 })}, "Returning wait Returning"},
		{"not Ready yet", []change{back(v2), notReady}, "Returning wait Returning"},
		{"never Ready", []change{back(v2), notReady, issued(45 * time.Minute)}, "Lost wait Lost"},
		{"within its time", []change{back(v2), notReady, issued(45*time.Minute - time.Second)}, "Returning wait Returning"},
		{"ready is claimed on another version", []change{back(v2), with(func(n *fleet.Node) { n.OSVersion, n.Marks.Report.Current = v1, v1 })}, "Returning wait Returning"},
		{"and that isn't waited for without limit (L2)", []change{back(v2), issued(time.Hour), with(func(n *fleet.Node) { n.OSVersion, n.Marks.Report.Current = v1, v1 })}, "Lost wait Lost"},
		{"rolled back", []change{back(v1)}, "Returning Return RolledBack"},
		{"its power was lost before that", []change{powerLost}, "Returning Return RebootedEarly"},
		{"activation failed, nothing rebooted", []change{rebooting, answers(marker.StateError, "x")}, "Returning Abandon RebootFailed"},
		{"activation failed, and the kubelet has left that boot", []change{rebooting, answers(marker.StateError, "x"), with(func(n *fleet.Node) { n.BootID = "b2" })}, "Returning wait Returning"},
		{"or the agent has", []change{rebooting, answers(marker.StateError, "x"), with(func(n *fleet.Node) { n.Marks.Report.BootID = "b2" })}, "Returning wait Returning"},

		// Verifying.
		{"the soak runs", []change{verifying(30 * time.Second)}, "Verifying wait Soaking"},
		{"the soak is over", []change{verifying(time.Minute)}, "Verifying Finish Updated"},
		{"Ready changed, the soak begins anew", []change{verifying(time.Minute), with(func(n *fleet.Node) { n.ReadySince = "r2" })}, "Verifying Soak SoakRestarted"},
		{"a soak that begins implausibly late", []change{verifying(-25 * time.Hour)}, "Verifying Soak SoakRestarted"},
		{"unwell", []change{verifying(time.Second), notReady}, "Verifying Recordon NotReadyAfterUpdate"},
		{"unwell and cordoned again", []change{verifying(time.Second), notReady, cordoned, with(func(n *fleet.Node) { n.Marks.Disruption.Soak = nil })}, "Verifying wait NotReadyAfterUpdate"},
		{"for too long", []change{verifying(time.Second), issued(time.Hour), notReady, cordoned, with(func(n *fleet.Node) { n.Marks.Disruption.Soak = nil })}, "Lost wait Lost"},
		{"a Lost node is cordoned first", []change{verifying(time.Second), issued(time.Hour), notReady}, "Verifying Recordon NotReadyAfterUpdate"},
		{"a node that comes and goes is Lost too, and its soak runs on", []change{verifying(time.Second), issued(16 * time.Minute)}, "Lost wait Soaking"},
		{"not within its time", []change{verifying(time.Second), issued(16*time.Minute - time.Second)}, "Verifying wait Soaking"},
		{"and ends", []change{verifying(time.Minute), issued(time.Hour)}, "Verifying Finish Updated"},
		{"the witnesses part", []change{verifying(time.Minute), with(func(n *fleet.Node) { n.Marks.Report.BootID = "b3" })}, "Verifying wait Returning"},
		{"for too long, too", []change{verifying(time.Minute), issued(time.Hour), with(func(n *fleet.Node) { n.Marks.Report.BootID = "b3" })}, "Lost wait Lost"},
		{"it falls back during the soak", []change{verifying(time.Second), with(func(n *fleet.Node) { n.OSVersion, n.Marks.Report.Current = v1, v1 })}, "Verifying Soak RolledBack"},
		{"a rolled-back node is verified on what it runs", []change{verifying(time.Minute), with(func(n *fleet.Node) {
			n.OSVersion, n.Marks.Report.Current, n.Marks.Intent.Target = v1, v1, ""
		})}, "Verifying Finish Verified"},

		// Resetting.
		{"resetting", []change{resetting}, "Resetting wait Resetting"},
		{"reset", []change{resetting, answers(marker.StateReady, "")}, "Resetting Stabilize ResetDone"},
		{"the reset failed", []change{resetting, answers(marker.StateError, "x")}, "Resetting wait HostError"},
		{"no agent is there to reset", []change{resetting, agentAway}, "Resetting wait AgentNotReady"},

		// Leaving.
		{"the label goes while idle, the agent's pod first", []change{unlabelled}, "Waiting wait LabelRemoved"},
		{"then the marks", []change{unlabelled, with(func(n *fleet.Node) { n.AgentPod = false })}, "Waiting Leave LabelRemoved"},
		{"the label goes while draining", []change{draining, unlabelled}, "Draining Leave LabelRemoved"},
		{"the label goes before busy", []change{rebooting, unlabelled}, "Rebooting Leave LabelRemoved"},
		{"after busy the boot is awaited", []change{busy, unlabelled}, "Rebooting wait LabelRemoved"},
		{"until it is there", []change{busy, unlabelled, with(func(n *fleet.Node) { n.BootID = "b2" })}, "Rebooting Leave LabelRemoved"},
		{"or the agent's late error", []change{rebooting, answers(marker.StateError, "x"), unlabelled}, "Returning Leave LabelRemoved"},
		{"taking the label off ends a Lost node", []change{lost, unlabelled}, "Rebooting Leave LabelRemoved"},
		{"the label goes during the soak", []change{verifying(time.Second), unlabelled}, "Verifying Leave LabelRemoved"},
		{"unreadable and unlabelled is left alone", []change{draining, unlabelled, with(func(n *fleet.Node) { n.Problems = []marker.Problem{{Key: marker.KeyFailure, Why: "x"}} })}, "Unreadable wait AnnotationUnreadable"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := node("a", tc.changes...)
			var held []string
			if n.Disrupted() {
				held = append(held, "a")
			}
			s := fleetOf([]fleet.Node{n, node("b")}, held...)
			out := planner.Plan(s, policy.DefaultSettings())
			got, step := find(t, out, "a")
			assert.Equal(t, verdict(got), tc.want, "%s", got.Message)
			assert.Assert(t, got.Message.String() != "")
			if step != nil && step.Change != nil {
				assert.Equal(t, step.Change.ResourceVersion, "5")
				if l, err := intent.Lookup(step.Act, n.Phase()); err == nil && l.Issues != "" {
					assert.Equal(t, step.Change.Marks.Intent.Action, l.Issues)
					assert.Assert(t, step.Change.Marks.Intent.ID != "i1", "a new intent has a new id")
				} else if err == nil {
					assert.Equal(t, step.Change.Marks.Intent.ID, "i1", "no new intent without a line in the table")
				}
			}
		})
	}
}

// A node that waits is written to only when what it waits for changes (L4).
func TestWaitingIsWrittenOnce(t *testing.T) {
	n := node("a", draining, drain(fleet.Drain{Remaining: 1, Blocked: "by x", Next: now.Add(time.Second)}))
	_, step := find(t, planner.Plan(fleetOf([]fleet.Node{n}, "a"), policy.DefaultSettings()), "a")
	assert.Equal(t, step.Act, intent.ActNote)
	assert.Equal(t, *step.Change.Marks.Waiting, marker.Waiting{Reason: "EvictionBlocked", Message: "by x (at 2026-09-20 10:00:00 UTC)"}, "it stays true: what is seen later is in the plan")
	n.Marks = step.Change.Marks
	n.Drain.Blocked = "by y"
	_, step = find(t, planner.Plan(fleetOf([]fleet.Node{n}, "a"), policy.DefaultSettings()), "a")
	assert.Assert(t, step == nil, "another sentence is no other reason")
}

// A plan by the clock alone says when to look again.
func TestWake(t *testing.T) {
	fleetWide := func(*policy.Settings) {}
	force := func(s *policy.Settings) { s.Eviction.Force = true }
	alone := func(s *policy.Settings) { s.SingleNode = policy.SingleNodeAllow }
	drains := drain(fleet.Drain{Remaining: 1, Waiting: "x", Next: now.Add(2 * time.Hour)})
	long := now.Add(24 * time.Hour)
	for _, tc := range []struct {
		name    string
		rules   func(*policy.Settings)
		changes []change
		in      time.Duration
	}{
		{"nothing is due", fleetWide, nil, 0},
		{"a back-off", fleetWide, []change{offered(v2), failedOnce(time.Hour, v2)}, time.Hour},
		{"recently uncordoned", fleetWide, []change{offered(v2), with(func(n *fleet.Node) {
			n.Marks.History = []marker.Attempt{{Outcome: marker.OutcomeUncordoned, Ended: now.Add(-time.Minute)}}
		})}, 9 * time.Minute},
		{"others keep it out of service for so long that it counts no more", fleetWide, []change{notReady, awaySince(50 * time.Minute)}, 10 * time.Minute},
		{"a deadline of staging", fleetWide, []change{preparing, issued(time.Minute)}, 44 * time.Minute},
		{"a deadline that may fire soon", fleetWide, []change{preparing, issued(time.Hour), firstLook}, time.Second},
		{"a window that closes, for what waits for room to stage in it", func(s *policy.Settings) {
			s.Calendar, s.StageOutside, s.MaxStaging = nightly(t, "0 8 * * *", 4*time.Hour), false, 0
		}, []change{offered(v2)}, 2 * time.Hour},
		{"the place of a node that is asked to confirm", fleetWide, []change{confirming, issued(30 * time.Second)}, 90 * time.Second},
		{"an obstacle is looked at again", fleetWide, []change{prepared, found(time.Minute, fleet.ObstacleBudget, 20*time.Second)}, 20 * time.Second},
		{"the next eviction pass", fleetWide, []change{draining, drain(fleet.Drain{Remaining: 1, Waiting: "x", Next: now.Add(2 * time.Second)})}, 2 * time.Second},
		{"the end of a drain", fleetWide, []change{draining, drains}, 29 * time.Minute},
		{"what is left may be deleted", force, []change{draining, drains}, 29 * time.Minute},
		{"the end of a drain by force", force, []change{draining, drains, cordonedSince(31 * time.Minute)}, 4 * time.Minute},
		{"the end of a drain once more, for pods that came late", fleetWide, []change{draining, drains, cordonedSince(2 * time.Hour), lateSince(time.Minute)}, 29 * time.Minute},
		{"the only node waits for its agent", alone, []change{draining, agentAway}, 29 * time.Minute},
		{"the end of the soak", fleetWide, []change{verifying(20 * time.Second)}, 40 * time.Second},
		{"the end of patience with workloads", withPods, []change{verifying(2 * time.Minute), noted,
			looked(fleet.Checked{For: fleet.CheckWorkloads, Problem: "x", Next: long})}, 9 * time.Minute},
		{"the end of patience with a reboot", fleetWide, []change{busy, issued(0)}, 30 * time.Minute},
	} {
		t.Run(tc.name, func(t *testing.T) {
			set := policy.DefaultSettings()
			tc.rules(&set)
			nodes := []fleet.Node{node("a", tc.changes...)}
			if set.SingleNode == policy.SingleNodeNever {
				nodes = append(nodes, node("b"))
			}
			out := planner.Plan(fleetOf(nodes), set)
			if tc.in == 0 {
				assert.Assert(t, out.Wake.IsZero())
				return
			}
			assert.Equal(t, out.Wake.Sub(now), tc.in)
		})
	}
}

// A new leader doesn't take back on the node that it is Lost, only to say it again at its second look.
func TestLostIsNotTakenBack(t *testing.T) {
	out := planner.Plan(fleetOf([]fleet.Node{node("a", lost, firstLook)}), policy.DefaultSettings())
	standing, step := find(t, out, "a")
	assert.Equal(t, verdict(standing), "Rebooting wait Rebooting")
	assert.Assert(t, step == nil, "%+v", step)
	_, step = find(t, planner.Plan(fleetOf([]fleet.Node{node("a", lost, firstLook, issued(time.Minute))}), policy.DefaultSettings()), "a")
	assert.Assert(t, step != nil && step.Change.Marks.Waiting.Reason == string(plan.ReasonRebooting), "%+v", step)
	for ago, taken := range map[time.Duration]bool{time.Minute: true, 5 * time.Minute: false} {
		_, step = planOf(t, withHooks, back(v2), asked("before-uncordon.", ago), firstLook, func(n *fleet.Node) { n.Marks.Waiting.Reason = string(plan.ReasonLost) })
		assert.Assert(t, taken == (step != nil), "a hook that is silent for %s: %+v", ago, step)
	}
}

// What is awaited, and what an attempt ended by, is said in words that tell one cause from another (S9).
func TestWhatIsSaid(t *testing.T) {
	evicted := func(n *fleet.Node) { n.Evicted = 1000 }
	for _, tc := range []struct {
		changes []change
		want    string
	}{
		{[]change{back(v2), with(func(n *fleet.Node) { n.BootID = "b1" })}, "the kubelet has not reported the new boot yet"},
		{[]change{back(v2), with(func(n *fleet.Node) { n.BootID = "" })}, "the kubelet has not reported the new boot yet"},
		{[]change{back(v2), with(func(n *fleet.Node) { n.Marks.Report.BootID = "b3" })}, "agent and kubelet do not name the same boot yet"},
		{[]change{back(v2), with(func(n *fleet.Node) { n.OSVersion = v1 })}, `the kubelet reports version "1.1.0", the agent "1.2.0"`},
		{[]change{back(v2), runs(v1)}, "the agent calls 1.1.0 an update to 1.2.0"},
		{[]change{back(v2), notReady}, "the kubelet says that the node is not Ready yet"},
		{[]change{preparing, issued(time.Hour)}, "the agent did not stage 1.2.0 within 45m0s"},
		{[]change{preparing, issued(time.Hour), answers(marker.StateBusy, "locked")}, "the agent did not stage 1.2.0 within 45m0s: locked"},
		{[]change{preparing, issued(time.Hour), answers(marker.StateNone, "old")}, "the agent did not stage 1.2.0 within 45m0s"},
		{[]change{confirming, issued(time.Hour)}, "the agent did not confirm 1.2.0 within 30m0s"},
		{[]change{preparing, offered("")}, "1.2.0 is not offered any more"},
		{[]change{preparing, offered(v3)}, "1.3.0 is offered instead of 1.2.0"},
		{[]change{preparing, paused}, "paused: no reason given"},
		{[]change{preparing, paused, with(func(n *fleet.Node) { n.Marks.PausedReason = "a fair" })}, "paused: a fair"},
		{[]change{draining, drain(fleet.Drain{Remaining: 1, Awaited: "a job"}), evicted}, "1000 pods were evicted from the node within an hour, the most " +
			"that drain.evictionsPerHour allows: look for a pod that comes back to the node each time, or raise the limit"},
		{[]change{draining, cordonedSince(time.Hour), drain(fleet.Drain{Remaining: 1, Awaited: "a job"}), evicted}, "not drained within 30m0s: " +
			"1000 pods were evicted from the node within an hour, the most that drain.evictionsPerHour allows: look for a pod that comes back to the node each time, or raise the limit"},
		{[]change{answers(marker.StateError, "x"), because(marker.ReasonAnotherUpdater)}, "x; a reboot, or taking that back on the host, ends it"},
	} {
		got, _ := planOf(t, func(*policy.Settings) {}, tc.changes...)
		assert.Check(t, got.Message.String() == tc.want, "%s", got.Message)
	}
}
