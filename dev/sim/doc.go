// Package sim plays whole rollouts in one process on a virtual clock, without Kubernetes, and looks for one that
// breaks a promise of the operator (docs/safety.md#the-promises). What takes real time on a real control
// plane is dev/simcluster. It is test support and no part of the product.
//
// Real in it are policy.Plan and policy.Work, kube.Cluster, kube.Policy, drain.Drainer and controller.Term, the agent
// with its client of the Update API, authorizer.ParsePatch and rule.Judge, runner.Runner with all its loops but that of
// channels, and the host simulator of dev/hostsim. Simulated are the API server (dev/sim/apiserver, held against a real
// one), the network and the watches between, the election by the rules of client-go's, and what of Kubernetes the
// operator sees: kubelets with the pods of plans, scheduler, node lifecycle, ReplicaSets, DaemonSets, disruption
// budgets, volumes that are attached and detached, and the controllers that answer hooks.
//
// Each process of the operator is a set of coroutines that give control back at every request and every
// wait; which one goes on, how long everything takes and what goes wrong is drawn from a seed. So anything can
// happen between any two requests, and the same seed always gives the same run.
//
// A Scenario is all that a run depends on. Generate makes one from a seed, Run plays it: first the time
// of trouble, in which faults strike and users interfere; then everything is put right, and the fleet
// must come to its end and to rest. The S promises are checked at every write and every reboot, the L
// promises at the end, by code that looks at what is stored and at the machines, and never at what a
// process believes. Search runs many seeds, Shrink makes a failing scenario smaller.
//
// One seed in four has nodes of plans beside those of Bottlerocket, or instead of them: plans.go draws them, runner.go
// is a runner's process, planpods.go a kubelet that runs its pods, wall.go what admission says of these, and
// checks_plans.go what must hold. One seed in sixteen has policies by which the controller labels nodes: labels.go draws
// them, and checks that no label is set again which a user removed. In one seed in four machines join late, with the
// taint of new nodes: fresh.go draws them, and what becomes of taints, and checks_fresh.go is what must hold. Each part
// of a scenario is drawn from numbers of its own, so that a new part leaves the seeds without it as they were.
//
// It may import everything but commands.
package sim
