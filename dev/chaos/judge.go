package chaos

import (
	"fmt"
	"time"
)

// Terms are what a run is judged by: what it was told to do and what it did itself.
type Terms struct {
	// Nodes is how many there are, Version what all of them must run in the end.
	Nodes   int
	Version string
	// Limit and MaxLost are the operator's budget, RebootDeadline and ReturnDeadline when a node is Lost.
	Limit, MaxLost                 int
	RebootDeadline, ReturnDeadline time.Duration
	// Soak is how long a node must be Ready before it counts as updated.
	Soak time.Duration
	// Outages are the times in which the log may lack what happened: the API server or its store was away.
	Outages []Window
	// Rest is the time in which nothing changed any more.
	Rest Window
}

// Violation is a promise that was broken.
type Violation struct {
	// Promise is its name in docs/safety.md#the-promises.
	Promise string
	Node    string
	At      time.Time
	What    string
}

func (v Violation) String() string {
	return fmt.Sprintf("%s %s %s: %s", v.At.UTC().Format("15:04:05.000"), v.Promise, v.Node, v.What)
}

// Figures are what the log says of a run.
type Figures struct {
	Requests, Writes, Holes, Torn  int
	Cordons, Begun, Reboots        int
	Updated, Abandoned, Failed     int
	MostDisrupted                  int
	Refused, Conflicts, Renewals   int
	Checks                         int
	NodesOnVersion, NodesScheduled int
}

// Verdict is the judge's.
type Verdict struct {
	Figures    Figures
	Violations []Violation
}

// story is the log, put in order.
type story struct {
	log   Log
	terms Terms
	nodes nodeHistory
	pods  *podHistory
	slots slotHistory

	figures *Figures
	promise string
	found   []Violation
}

// check notes that something was looked at, and what is wrong with it unless ok.
func (s *story) check(ok bool, node string, at time.Time, format string, args ...any) {
	s.figures.Checks++
	if !ok {
		s.found = append(s.found, Violation{Promise: s.promise, Node: node, At: at, What: fmt.Sprintf(format, args...)})
	}
}

// inOutage reports whether the log may lack something of the time between.
func (s *story) inOutage(from, to time.Time) bool {
	for _, w := range s.terms.Outages {
		if w.meets(from, to) {
			return true
		}
	}
	return false
}

// Invariant is one promise and what holds a log to it.
type Invariant struct {
	// Promise is its name in docs/safety.md#the-promises; "log" is for the log itself, "writers" for the table of
	// keys, and "refusals" for looking again after a conflict.
	Promise string
	hold    func(*story)
}

// Invariants is the closed list.
func Invariants() []Invariant {
	return []Invariant{
		{"log", holes},
		{"writers", writers},
		{"refusals", refusals},
		{"S1", budget},
		{"S2", drained},
		{"S3", oneReboot},
		{"S4", reports},
		{"S5", cordons},
		{"S7", successes},
		{"L1", updated},
		{"L4", rest},
	}
}

// Judge holds a log to all invariants.
func Judge(log Log, terms Terms) Verdict {
	var v Verdict
	s := &story{log: log, terms: terms, nodes: nodesOf(log), pods: podsOf(log), slots: slotsOf(log), figures: &v.Figures}
	for _, i := range Invariants() {
		s.promise = i.Promise
		i.hold(s)
	}
	s.count()
	v.Violations = s.found
	return v
}

// count fills in the figures that no invariant needs.
func (s *story) count() {
	f := s.figures
	f.Requests, f.Torn = len(s.log.Entries), s.log.Torn
	for _, e := range s.log.Entries {
		if !e.writes() || !isOperator(e.User.Username) {
			continue
		}
		f.Writes++
		switch {
		case e.Answer.Code == 409:
			f.Conflicts++
		case e.Answer.Code == 403:
			f.Refused++
		case e.succeeded() && e.resource() == "secrets" && e.Verb == "update":
			f.Renewals++
		}
	}
}
