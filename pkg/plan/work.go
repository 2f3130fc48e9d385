package plan

import (
	"slices"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
)

// TaskKind is what kind of request carries a part of a plan out.
type TaskKind string

const (
	// TaskRecordPolicy notes that this cluster has a policy. Without it nothing starts.
	TaskRecordPolicy TaskKind = "record the policy"
	// TaskTakeSlots adds Task.Take to the slot list, by compare-and-swap on the list that was planned from. It is a write
	// also if they all stand there: so the list is certain to be the latest, and a controller that is about to free one of
	// them by what it read before meets a conflict.
	TaskTakeSlots TaskKind = "take slots"
	// TaskLook is the live look that the step needs before anything else.
	TaskLook TaskKind = "look"
	// TaskWrite writes the step's change.
	TaskWrite TaskKind = "write"
	// TaskLookAhead begins a look at what would keep a drain of the step's node from its end, TaskDrain an eviction pass
	// over it, and TaskCheck a live look at what it carries. Nothing waits for their answers.
	TaskLookAhead TaskKind = "look ahead"
	TaskDrain     TaskKind = "drain"
	TaskCheck     TaskKind = "check"
	// TaskFreeSlots removes Task.Free from the slot list.
	TaskFreeSlots TaskKind = "free slots"
	// TaskRecordVersions notes Task.Saw as known from now on. For room others are forgotten, those in Task.Named last.
	TaskRecordVersions TaskKind = "record versions"
	// TaskAskAlerts begins to ask which alerts stand. Nothing waits for the answer.
	TaskAskAlerts TaskKind = "ask for alerts"
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

// Work is the order in which a plan is carried out, and what the results so far leave of it: slots are taken before the
// first cordon and freed after the write that ends a disruption, so that a crash between any two tasks leaves a slot
// too many and never one too few. A step whose task fails is left to the next plan; the others go on. It is a plain
// value: copies are independent.
type Work struct {
	record bool
	take   map[string]string
	steps  []Step
	// looked: the look before the first of the steps saw what it was to see.
	looked     bool
	free       []string
	saw, named []string
	ask        bool
	task       Task
}

// NewWork begins to carry out a plan.
func NewWork(p Plan) *Work {
	w := &Work{record: p.RecordPolicy, take: map[string]string{}, steps: p.Steps, saw: p.Saw, named: p.Named, ask: p.AskAlerts}
	for _, step := range p.Steps {
		if step.TakesSlot {
			w.take[step.UID] = step.Node
		}
	}
	return w
}

// Next returns the next task; false: the plan is carried out. Each must be followed by Did.
func (w *Work) Next() (Task, bool) {
	switch {
	case w.record:
		w.task = Task{Kind: TaskRecordPolicy}
	case len(w.take) > 0:
		w.task = Task{Kind: TaskTakeSlots, Take: w.take}
	case len(w.steps) > 0:
		w.task = Task{Kind: w.kind(), Step: w.steps[0]}
	case len(w.free) > 0:
		w.task = Task{Kind: TaskFreeSlots, Free: w.free}
	case len(w.saw) > 0:
		w.task = Task{Kind: TaskRecordVersions, Saw: w.saw, Named: w.named}
	case w.ask:
		w.task = Task{Kind: TaskAskAlerts}
	default:
		return Task{}, false
	}
	return w.task, true
}

// kind is what comes next of the first step.
func (w *Work) kind() TaskKind {
	switch step := &w.steps[0]; {
	case step.Act == intent.ActLook:
		return TaskLookAhead
	case step.Act == intent.ActDrain:
		return TaskDrain
	case step.Act == intent.ActCheck:
		return TaskCheck
	case step.Before != LookNone && !w.looked:
		return TaskLook
	}
	return TaskWrite
}

// Did takes in how the last task went. ok: a write was made, a look saw what it was to see. A result that isn't known
// is not ok.
func (w *Work) Did(ok bool) {
	switch w.task.Kind {
	case TaskRecordPolicy:
		w.record = false
		if !ok {
			w.take = nil
			w.drop(func(s Step) bool { return s.TakesSlot || s.Act == intent.ActStage || s.Act == intent.ActLabel })
		}
	case TaskTakeSlots:
		w.take = nil
		if !ok {
			w.drop(func(s Step) bool { return s.TakesSlot })
		}
	case TaskFreeSlots:
		w.free = nil
	case TaskRecordVersions:
		w.saw = nil
	case TaskAskAlerts:
		w.ask = false
	default:
		w.didStep(ok)
	}
}

func (w *Work) drop(unwanted func(Step) bool) {
	w.steps = slices.DeleteFunc(slices.Clone(w.steps), unwanted)
}

func (w *Work) didStep(ok bool) {
	step := &w.steps[0]
	if w.looked = ok && w.task.Kind == TaskLook && step.Change != nil; w.looked {
		// What it was looked for is written next.
		return
	}
	if ok && step.FreesSlot {
		w.free = append(slices.Clip(w.free), step.UID)
	}
	w.steps = w.steps[1:]
}
