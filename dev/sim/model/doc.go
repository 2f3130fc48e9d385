// Package model is the exhaustive check of the protocol: the transition code of the product, explored
// breadth first to the last state for small fleets. It is test support.
//
// # What is real
//
// policy.Plan and policy.Work (what a controller decides, and in which order it asks for it, with each
// answer), policy.Change.Diff, marker's Decode, Encode, EncodeReport and Diff on annotations as they stand
// on a Node, next.Decide and next.Memory (what an agent decides and remembers), next.Changes, and
// rule.Judge, which the proxy asks on a live read before it carries an agent's patch out.
//
// # What is modelled
//
//   - The API server: a Node is a record, the list of slots is another. A write's precondition is that
//     nothing was written since the look that it was made from; a write that changes nothing is none.
//   - Controllers: all believe that they lead, all the time. Each plans from every Node as it is or as it
//     was before the last write, but never as it was before its own last one, and from the list of slots
//     as it read it last, however long ago. It takes its time between any two requests. PassedOver is
//     always true, which lets a deadline fire sooner than in the product. The policy is the default one,
//     but that nodes which others took out of service don't count: that ends with a clock.
//   - Eviction: one pod on each node, there whenever the node is schedulable. A pass takes it away. An
//     eviction from a look so old that the node no longer drains is left out. A look before the cordon
//     finds nothing in the way: it decides only on when a node is cordoned.
//   - The agent's loop around Next, in small: a look at the Node as it is or was, a look at the host, and
//     one request. A judged write may be carried out after its agent has died, but one at most.
//   - The host: refresh (over at once), prepare, activate, deactivate, reboot as the Update API has them,
//     boots, roll-backs; and its kubelet's reports. Node 1.0.0 is offered 1.1.0, never anything else.
//   - Time: what is written is of now, of a time to come, or past every deadline. The soak of a node may
//     be over at any moment. The deadlines of one node pass as a fault; where nothing else happens the
//     clock jumps beyond all of them for nothing. Config.Clock adds the jump of all as a fault. No
//     deadline passes while a host is about to go down.
//
// Faults, each of which counts: a controller or an agent dies, between any two requests; the answer to a
// controller's write to a Node or to the slots, to an agent's write, or to a host's command is lost, or the
// host does not hear the command; an unplanned reboot; a roll-back; a prepare or an activation that fails;
// a kubelet that is NotReady for a while; a pod that comes to a cordoned node; deadlines that pass; a policy
// that pauses the fleet for as long as one plan and takes back what drains; a human who cordons, uncordons,
// pauses a node, takes its label off or deletes it. That the human ends the pause, puts the label back or
// wants a retry costs nothing, and the way to a finished state doesn't need it.
//
// # What is checked
//
// At every transition S1 (a cordon has a slot, and takes the count above no budget; Lost nodes beside it),
// S2, S3, S4, S5, S7, that no mark is unreadable, and that nothing counts as a failure without a fault; in
// every state that a disrupted node holds a slot; and of the whole graph that from every state a finished
// one is reached without a fault. A finished node is idle on the new version, paused and not disrupted,
// or without label and marks; one that a human took back into service between activation and reboot may end
// with the agent's word on another updater, until a human wants a retry. Not told from ours: a cordon that a human makes after taking
// ours away, before any controller looked. Not checked: a host that was asked to reboot before the human
// took its Node's cordon, label or deadline away.
//
// # Reductions
//
// Names (intents, boots, records, Ready's times) are those of their order of appearance in one node, and
// what nothing is decided on is left out: messages, the history but for a hand that took a cordon away.
// Writes that only tell users what is waited for are steps only with Config.Notes. The two controllers are
// alike. A task that depends on its own node alone is planned and carried out in one step: as long as the
// Node stands, a later plan has it too. A watch that lags counts only where the old look makes another plan
// for others. Where no fault can come any more between them, an agent's request and its effect are one step.
// Every run with F faults has F victims, so the search is one for each set of victims, and a node that is
// none goes its own way as far as that changes neither what a controller does for others nor what it counts.
// Config.Full does without the last two, and the tests hold that the same defects are found either way.
package model
