package plan

import (
	"maps"
	"slices"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
)

// TaskKind is what kind of request carries a part of a plan out.
type TaskKind string

const (
	// TaskTakeSlots adds Task.Take to the slot list, by compare-and-swap on the list that was planned
	// from. It is a write also if they all stand there: so the list is certain to be the latest, and
	// who is about to free one of them from what he read before meets a conflict.
	TaskTakeSlots TaskKind = "take slots"
	// TaskLookEmpty looks live that nothing is left to evict from the step's node.
	TaskLookEmpty TaskKind = "look for pods"
	// TaskLookAlone looks live that the step's node is the only one of its cluster.
	TaskLookAlone TaskKind = "look for other nodes"
	// TaskWrite writes the step's change.
	TaskWrite TaskKind = "write"
	// TaskLookGone looks live that the step's node, with its UID, is gone.
	TaskLookGone TaskKind = "look for the node"
	// TaskLookFenced looks live that the step's node shows no disruption, and is in no phase that a cordon is computed from.
	TaskLookFenced TaskKind = "look for a cordon"
	// TaskLookAhead begins a look at what would keep a drain of the step's node from its end. Nothing waits for its answer.
	TaskLookAhead TaskKind = "look ahead"
	// TaskDrain begins an eviction pass over the step's node. Nothing waits for its answer.
	TaskDrain TaskKind = "drain"
	// TaskCheck begins a live look at what the step's node carries. Nothing waits for its answer either.
	TaskCheck TaskKind = "look"
	// TaskFreeSlots removes Task.Free from the slot list.
	TaskFreeSlots TaskKind = "free slots"
	// TaskAskAlerts begins to ask which alerts stand. Nothing waits for the answer.
	TaskAskAlerts TaskKind = "ask for alerts"
	// TaskRecordPolicy notes that this cluster has a policy. Without it nothing starts.
	TaskRecordPolicy TaskKind = "record the policy"
	// TaskRecordVersions notes Task.Saw as known from now on. For room others are forgotten, those in Task.Named last.
	TaskRecordVersions TaskKind = "record versions"
)

// Task is one request.
type Task struct {
	Kind TaskKind
	Step Step
	// Take holds UIDs with their nodes' names, Free UIDs.
	Take map[string]string
	Free []string
	// Saw and Named are versions.
	Saw, Named []string
}

// Work is the order in which a plan is carried out, and what the answers so far leave of it: slots are
// taken before the first cordon and freed after the write that ends a disruption, so that a crash
// between any two tasks leaves a slot too many and never one too few. Steps whose task is refused are
// left to the next plan; the others go on.
type Work struct {
	take    map[string]string
	steps   []Step
	granted bool
	looked  bool
	free    []string
	saw     []string
	named   []string
	record  bool
	ask     bool
	task    Task
}

// NewWork begins to carry out a plan.
func NewWork(out Plan) *Work {
	w := &Work{take: map[string]string{}, steps: out.Steps, saw: out.Saw, named: out.Named, record: out.RecordPolicy, ask: out.AskAlerts}
	for _, step := range out.Steps {
		if step.TakesSlot {
			w.take[step.UID] = step.Node
		}
	}
	w.granted = len(w.take) == 0
	return w
}

// Clone returns a copy that goes its own way.
func (w *Work) Clone() *Work {
	c := *w
	c.take = maps.Clone(w.take)
	c.free = append([]string(nil), w.free...)
	return &c
}

// Next returns the next task; false: the plan is carried out. Each must be followed by Answered.
func (w *Work) Next() (Task, bool) {
	if w.record {
		w.task = Task{Kind: TaskRecordPolicy}
		return w.task, true
	}
	if len(w.take) > 0 {
		w.task = Task{Kind: TaskTakeSlots, Take: w.take}
		return w.task, true
	}
	for len(w.steps) > 0 && w.steps[0].TakesSlot && !w.granted {
		w.steps = w.steps[1:]
	}
	if len(w.steps) > 0 {
		step := w.steps[0]
		w.task = Task{Kind: TaskWrite, Step: step}
		switch {
		case step.Act == intent.ActLook:
			w.task.Kind = TaskLookAhead
		case step.Act == intent.ActDrain:
			w.task.Kind = TaskDrain
		case step.Act == intent.ActCheck:
			w.task.Kind = TaskCheck
		case step.Act == intent.ActRelease && step.Reason == ReasonSlotOrphaned:
			w.task.Kind = TaskLookFenced
		case step.Act == intent.ActRelease:
			w.task.Kind = TaskLookGone
		case step.Act == intent.ActReboot && step.Reason == ReasonDrained && !w.looked:
			// Between the last eviction pass and now a pod may have been bound to the node all the same.
			w.task.Kind = TaskLookEmpty
		case step.Act == intent.ActReboot && step.Reason == ReasonSingleNode && !w.looked:
			w.task.Kind = TaskLookAlone
		}
		return w.task, true
	}
	if len(w.free) > 0 {
		w.task = Task{Kind: TaskFreeSlots, Free: w.free}
		return w.task, true
	}
	if len(w.saw) > 0 {
		w.task = Task{Kind: TaskRecordVersions, Saw: w.saw, Named: w.named}
		return w.task, true
	}
	if w.ask {
		w.task = Task{Kind: TaskAskAlerts}
		return w.task, true
	}
	return Task{}, false
}

// Answered takes in how the last task went: a write or change of slots was done, a look saw what it was
// to see. An answer that didn't come is a no.
func (w *Work) Answered(yes bool) {
	switch w.task.Kind {
	case TaskRecordPolicy:
		w.record = false
		if !yes {
			w.take = nil
			w.steps = slices.DeleteFunc(slices.Clone(w.steps), func(s Step) bool { return s.TakesSlot || s.Act == intent.ActPrepare })
		}
		return
	case TaskTakeSlots:
		w.take, w.granted = nil, yes
		return
	case TaskFreeSlots:
		w.free = nil
		return
	case TaskRecordVersions:
		w.saw = nil
		return
	case TaskAskAlerts:
		w.ask = false
		return
	case TaskLookEmpty, TaskLookAlone:
		if yes {
			w.looked = true
			return
		}
	case TaskWrite, TaskLookGone, TaskLookFenced:
		if yes && w.task.Step.FreesSlot {
			w.free = append(w.free, w.task.Step.UID)
		}
	}
	w.steps, w.looked = w.steps[1:], false
}
