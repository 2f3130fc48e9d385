package model

import (
	"slices"
	"strings"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent/next"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/authorizer/rule"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

const refreshEvery = 30 * time.Minute

// startAgent is a new process where there is to be one.
func (m *Model) startAgent(c *column) {
	if c.host.up && c.cur.exists && c.cur.labelled {
		c.agent = agent{up: true, memory: next.NewMemory(m.started(c), refreshEvery)}
	}
	c.agentBehind = false
}

// started is when a new process starts: at another moment than one whose words stand on the Node, or are
// on their way there.
func (m *Model) started(c *column) time.Time {
	for at := now; ; at = at.Add(-time.Millisecond) {
		if word := at.Format(time.RFC3339Nano); !strings.Contains(c.cur.marks, "at "+word) && !strings.Contains(c.orphan.marks, "at "+word) {
			return at
		}
	}
}

// endAgent ends the process. What it had sent may still be carried out.
func (m *Model) endAgent(c *column) {
	if c.agent.sent != (report{}) && c.orphan == (report{}) {
		c.orphan = c.agent.sent
	}
	c.agent, c.agentBehind = agent{}, false
}

func (e *expansion) ofAgent() {
	c := e.from
	if c.orphan != (report{}) {
		late := c
		r := late.cur
		r.marks = c.orphan.marks
		e.m.write(&late, r)
		late.orphan = report{}
		e.add(system, "a dead agent's write is carried out", late, "")
	}
	if !c.agent.up {
		return
	}
	if !c.cur.labelled || !c.cur.exists {
		gone := c
		e.m.endAgent(&gone)
		e.add(system, "the agent's pod leaves", gone, "")
	}
	if !e.quick {
		dead := c
		e.m.endAgent(&dead)
		e.m.startAgent(&dead)
		if dead.agent.memory != c.agent.memory || dead.orphan != c.orphan {
			e.add(fault, "the agent is restarted", dead, "")
		}
	}
	if c.agent.sent != (report{}) {
		done := c
		e.m.carryOut(&done)
		e.add(system, "the proxy carries the agent's write out", done, "")
		if !e.quick {
			lost := c
			r := lost.cur
			r.marks = c.agent.sent.marks
			e.m.write(&lost, r)
			lost.agent.sent, lost.agentBehind = report{}, false
			e.add(fault, "the proxy carries the agent's write out, and the answer is lost", lost, "")
		}
		return
	}
	e.turn(c.cur, true)
	if c.agentBehind {
		e.turn(c.prev, false)
	}
}

// carryOut writes what the agent sent.
func (m *Model) carryOut(c *column) {
	sent, r := c.agent.sent, c.cur
	r.marks = sent.marks
	m.write(c, r)
	c.agent.sent, c.agentBehind = report{}, false
	if sent.busy {
		id := m.decodings.of(c.cur.marks).marks.Intent.ID
		c.agent.memory.Affirm(id)
		c.agent.affirmed = id
	}
}

// turn is one turn of the agent: a look at the host, a decision, and the request that comes of it.
func (e *expansion) turn(seen record, current bool) {
	c := e.from
	if !seen.exists {
		return
	}
	node := e.m.decodings.of(seen.marks)
	wanted, problems := marker.DecodeIntent(node.annotations)
	if len(problems) > 0 {
		wanted = marker.Intent{}
	}
	last, _ := marker.DecodeReport(node.annotations)
	look := c.host.observe()
	c.agent.memory.Observed(now, look)
	if current {
		c.agentBehind = false
	}
	v := c.agent.memory.View(now, wanted, last, look)
	step := next.Decide(v)
	if step.Kind == next.StepCommand {
		e.command(c, v, step.Command)
		return
	}
	if diff := next.Changes(v, step, node.annotations, "model"); len(diff) > 0 {
		e.send(c, seen, current, diff, step)
		return
	}
	e.looked(c, current)
}

// looked: nothing came of a turn but what the process remembers.
func (e *expansion) looked(c column, current bool) {
	if current && e.m.intern(c) != e.m.intern(e.from) {
		e.add(system, "the agent looks", c, "")
	}
}

// send is the write's way to the proxy, which looks live and judges. From an old look it meets a
// conflict, and the next look is a live one.
func (e *expansion) send(c column, seen record, current bool, diff map[marker.Key]*string, step next.Step) {
	if !current {
		return
	}
	stands := e.m.decodings.of(seen.marks)
	patch := map[string]*string{}
	for k, v := range diff {
		patch[string(k)] = v
	}
	refusal := rule.Judge(rule.Write{
		NodeName: "n", NodeUID: "u",
		Live: rule.Live{Name: "n", UID: "u", ResourceVersion: fresh, Annotations: stands.annotations,
			Unschedulable: seen.unschedulable},
		Patch: rule.Patch{ResourceVersion: fresh, Annotations: patch},
		Now:   now,
	})
	what := "the agent writes facts"
	if step.Kind == next.StepReport {
		what = "the agent answers " + string(step.State)
		if step.Message != "" {
			what += ": " + step.Message
		}
	}
	if refusal != nil && e.m.config.Defect != DefectNoJudge {
		e.m.coverage.refused(string(refusal.Reason))
		e.looked(c, current)
		return
	}
	after := applied(stands.annotations, diff)
	answered := slices.ContainsFunc(marker.AnswerKeys(), func(k marker.Key) bool { return stands.annotations[string(k)] != after[string(k)] })
	bad := mayReport(stands, diff, after, answered)
	if e.m.config.Defect == DefectDeafAgent && step.State == marker.StateBusy {
		c.agent.memory.Affirm(stands.marks.Intent.ID)
		e.add(system, what+", unheard", c, "")
		return
	}
	c.agent.sent = report{marks: written(after), busy: step.Kind == next.StepReport && step.State == marker.StateBusy}
	if e.quick && !c.host.leaving {
		e.m.carryOut(&c)
	} else {
		what += " (judged)"
	}
	e.add(system, what, c, bad)
}

// command sends a command to the host.
func (e *expansion) command(c column, v next.View, command next.Command) {
	bad := mayCommand(&c, v, command)
	put := func(k kind, what string, does, lost bool) {
		c := c
		mem := &c.agent.memory
		mem.Sending(v, now, command)
		result := next.Result{Delivery: next.DeliveryUnknown}
		if does {
			if command == next.CommandReboot {
				c.agent.asked = v.Intent.ID
			}
			if answer := c.host.start(command, v.Intent.ID); !lost {
				result = answer
			}
			if e.quick && c.host.running != "" {
				c.host.finish(true)
			}
		}
		mem.Sent(v, now, command, result, refreshEvery)
		e.add(k, what, c, bad)
	}
	what := "the agent asks the host for " + string(command)
	put(system, what, true, false)
	if !e.quick {
		put(fault, what+", which it does, and the answer is lost", true, true)
		put(fault, what+", which does not receive it", false, true)
	}
}
