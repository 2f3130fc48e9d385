package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Rules are a policy file but for its version: its fields, each with its value on one line.
type Rules []string

// Text is the policy file.
func (r Rules) Text() string { return "version: 1\n" + strings.Join(append(slices.Clone(r), ""), "\n") }

// put gives a field its value, instead of one that it had.
func (r *Rules) put(field, format string, args ...any) {
	line := field + ": " + fmt.Sprintf(format, args...)
	for i, old := range *r {
		if strings.HasPrefix(old, field+":") {
			(*r)[i] = line
			return
		}
	}
	*r = append(*r, line)
}

const (
	zoneLabel  = "topology.kubernetes.io/zone"
	stageLabel = "example.com/stage"
)

// labels are those of the i-th machine's node that policies go by.
func (s Scenario) labels(i int) map[string]string {
	labels := map[string]string{}
	if s.Zones > 0 {
		labels[zoneLabel] = string(rune('a' + i%s.Zones))
	}
	if s.Canaries > 0 {
		labels[stageLabel] = "production"
		if i < s.Canaries {
			labels[stageLabel] = "canary"
		}
	}
	if s.planned(i) {
		labels[systemLabel] = string(rune('a' + i%2))
	}
	return labels
}

// governed reports whether there is anything to see of a policy file.
func (s Scenario) governed() bool {
	return len(s.Policies) > 0 || slices.ContainsFunc(s.Faults, func(f Fault) bool { return slices.Contains(governing, f.Kind) })
}

// pauseField begins the rule that pauses the fleet.
const pauseField = "pause:"

// pausesBeside reports whether pauses of the fleet are set as the kubectl plugin sets them, beside the policy: in half
// of the seeds that have any.
func (s Scenario) pausesBeside() bool {
	pauses := func(rule string) bool { return strings.HasPrefix(rule, pauseField) }
	return s.Seed%2 == 0 && slices.ContainsFunc(slices.Concat(s.Policies...), pauses)
}

// govern draws policies, and what users do to them, for a part of the seeds.
func (s *Scenario) govern(r *rand.Rand) {
	if r.IntN(2) == 0 {
		return
	}
	s.Zones, s.Canaries = pick(r, 0, 2, 3, 3), 2+r.IntN(2)
	for i := range 1 + r.IntN(3) {
		var rules Rules
		if i > 0 && r.IntN(3) == 0 {
			// Not from the beginning, or there is nothing to be seen.
			paused(r, &rules)
		}
		for range 1 + r.IntN(3) {
			subjects[r.IntN(len(subjects))](r, &rules)
		}
		s.Policies = append(s.Policies, rules)
	}
	var last Rules
	for range 1 + r.IntN(2) {
		lasting[r.IntN(len(lasting))](r, &last)
	}
	s.Policies = append(s.Policies, last)
	for _, rule := range slices.Concat(s.Policies...) {
		field, _, _ := strings.Cut(rule, ":")
		if kind, ok := provoking[field]; ok && r.IntN(3) == 0 {
			f := Fault{At: time.Duration(r.Int64N(int64(s.Trouble))).Truncate(time.Millisecond), Kind: kind, On: r.IntN(s.Nodes), For: 3 * time.Minute}
			if kind == NodeDeleted {
				f.When = pick(r, AtReboot, AtBusy)
			}
			s.Faults = append(s.Faults, f)
			if kind == BadRelease && s.Seed%2 == 0 {
				// Those on which it failed go on to a better one, and others have yet to be offered that.
				f.At, f.Kind = f.At+s.Refresh*2/3, NewRelease
				s.Faults = append(s.Faults, f)
			}
		}
	}
	if s.Seed%3 == 0 {
		// In a cluster of several it must make no difference.
		for i := range s.Policies {
			s.Policies[i].put("singleNode", "allow")
		}
	}
	for range r.IntN(5) {
		f := Fault{At: time.Duration(r.Int64N(int64(s.Trouble))).Truncate(time.Millisecond), Kind: PersonWritesPolicy, On: r.IntN(s.Nodes),
			For: time.Duration(r.Int64N(int64(6 * time.Minute))).Truncate(time.Millisecond), N: r.IntN(16)}
		if r.IntN(2) == 0 {
			f.Kind = governing[r.IntN(len(governing))]
		}
		switch r.IntN(3) {
		case 0:
			f.When = moments[r.IntN(len(moments))]
		case 1:
			// What has begun and has not begun to reboot is what a change is about most.
			f.When = AtCordon
		}
		s.Faults = append(s.Faults, f)
		if f.Kind == PersonBreaksPolicy || f.Kind == PersonDeletesPolicy {
			// What starts now has no last good one.
			s.Faults = append(s.Faults, Fault{At: f.At, Kind: CrashController, On: r.IntN(s.Controllers), When: f.When})
		}
		if r.IntN(4) == 0 {
			s.Faults = append(s.Faults, Fault{At: f.At, Kind: hindrances[r.IntN(len(hindrances))], On: f.On, When: f.When, N: r.IntN(16),
				For: time.Duration(r.Int64N(int64(2 * time.Minute))).Truncate(time.Millisecond)})
		}
	}
}

// drain draws how a drain goes, for a part of the seeds that have policies; and budgets that hold drains up.
func (s *Scenario) drain(r *rand.Rand) {
	// What is looked at before the cordon seldom holds a drain up: half of the seeds have the trouble.
	s.Blind = r.IntN(2) == 0
	if len(s.Policies) == 0 || r.IntN(2) == 0 {
		return
	}
	// By force in all of them or in none: which of them a controller went by is hard to tell.
	how := []string{"{predict: false}", "{predict: true}", "{gracePeriod: 5s}"}
	if r.IntN(2) == 0 {
		how = []string{forceful}
	}
	for i := range s.Policies {
		s.Policies[i].put("drain", "%s", pick(r, how...))
	}
	for range 1 + r.IntN(3) {
		s.Faults = append(s.Faults, Fault{At: time.Duration(r.Int64N(int64(s.Trouble))).Truncate(time.Millisecond), Kind: pick(r, FrozenBudget, FrozenBudget, StuckPod),
			On: r.IntN(s.Nodes), For: 10 * time.Minute, N: r.IntN(16), When: pick(r, "", AtCordon)})
	}
}

// forceful lets drains delete what is left at their deadline.
const forceful = "{atDeadline: force}"

// provoking is what shows if a rule is kept.
var provoking = map[string]Kind{"versions": NewRelease, "maxFailed": BadRelease, "topology": NodeDeleted}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// subject writes what a policy says of one thing.
type subject func(r *rand.Rand, rules *Rules)

var (
	subjects = []subject{budget, zones, zones, canaries, canaries, opening, opening, frozen, versions, versions, age, threshold, threshold, staging, unavailable, hooking, hooking, marking, attaching, attaching, verifying, verifying}
	// lasting are those that let a fleet come to its end.
	lasting = []subject{budget, zones, canariesFirst, openingForAll, age, staging, unavailable, threshold, hooking, hooking, marking, attaching, verifying}
)

func budget(r *rand.Rand, rules *Rules) {
	rules.put("maxUnavailable", "%s", pick(r, "1", "2", "3", "5", "20%", "30%", "45%", "60%", "unlimited"))
}

func zones(r *rand.Rand, rules *Rules) {
	rules.put("maxUnavailable", "%s", pick(r, "3", "5", "90%", "unlimited"))
	rules.put("topology", "[{key: %s, %s}]", zoneLabel, pick(r, "maxUnavailable: 1", "maxUnavailable: 40%", "maxDomains: 1", "maxDomains: 2", "maxUnavailable: 2, maxDomains: 1"))
}

func staging(r *rand.Rand, rules *Rules) { rules.put("maxStaging", "%d", 1+r.IntN(4)) }

func unavailable(r *rand.Rand, rules *Rules) {
	if r.IntN(2) == 0 {
		rules.put("countUnavailable", "false")
		return
	}
	rules.put("ignoreAfter", "%dm", r.IntN(6))
}

const group = "{name: %s, nodeSelector: {matchLabels: {" + stageLabel + ": %s}}%s}"

// canaries are two groups with something of their own.
func canaries(r *rand.Rand, rules *Rules) {
	first, second := "", ""
	if r.IntN(3) > 0 {
		second = ", after: [canary]" + pick(r, "", ", afterSoak: 30s", ", afterSoak: 3m")
	}
	own := pick(r, "", ", maxUnavailable: 1", ", maxUnavailable: 50%", fmt.Sprintf(", topology: [{key: %s, maxDomains: 1}]", zoneLabel), ", pause: {reason: a fair}",
		", pause: {reason: a fair, inFlight: return}", fmt.Sprintf(", windows: [%s], whenWindowCloses: %s", window(r), pick(r, "finish", "return")), ", maxUnavailable: 0")
	if r.IntN(3) == 0 {
		first = own
	} else {
		second += own
	}
	if r.IntN(2) == 0 {
		rules.put("maxUnavailable", "%s", pick(r, "3", "4", "unlimited"))
	}
	rules.put("groups", "["+group+", "+group+"]", "canary", "canary", first, "production", "production", second)
}

func canariesFirst(r *rand.Rand, rules *Rules) {
	rules.put("groups", "["+group+", "+group+"]", "canary", "canary", pick(r, "", ", maxUnavailable: 1"), "production", "production",
		", after: [canary]"+pick(r, "", ", afterSoak: 1m", ", maxUnavailable: 60%"))
}

// window is open for some minutes again and again.
func window(r *rand.Rand) string {
	return fmt.Sprintf(`{schedule: "%d-59/%d * * * *", duration: %dm}`, r.IntN(5), pick(r, 6, 10, 15), 2+r.IntN(5))
}

func opening(r *rand.Rand, rules *Rules) {
	rules.put("windows", "[%s]", window(r))
	if r.IntN(2) == 0 {
		rules.put("fitWindow", "false")
	}
	if r.IntN(3) == 0 {
		rules.put("whenWindowCloses", "finish")
	}
	if r.IntN(3) == 0 {
		rules.put("stageOutsideWindows", "false")
	}
}

// openingForAll lets every update end within its window, whatever took long before.
func openingForAll(r *rand.Rand, rules *Rules) {
	rules.put("windows", `[{schedule: "*/10 * * * *", duration: 6m}]`)
	rules.put("fitWindow", "false")
	if r.IntN(2) == 0 {
		rules.put("whenWindowCloses", "finish")
	}
}

func frozen(r *rand.Rand, rules *Rules) {
	from := start.Add(time.Duration(r.IntN(10)) * time.Minute)
	rules.put("freezes", "[{from: %s, to: %s, reason: stocktaking}]", from.Format(time.RFC3339), from.Add(time.Duration(2+r.IntN(10))*time.Minute).Format(time.RFC3339))
	if r.IntN(2) == 0 {
		rules.put("windows", "[%s]", window(r))
	}
}

func paused(r *rand.Rand, rules *Rules) {
	rules.put("pause", "{reason: a fair, inFlight: %s}", pick(r, "finish", "return"))
}

func versions(r *rand.Rand, rules *Rules) {
	rules.put("versions", "{%s}", pick(r, `deny: 1.51.0`, `deny: ">=1.52.0"`, `allow: "<1.52.0"`, `hold: 1.51.0`, `hold: 1.51.0`, `downgrade: true`, `downgrade: true, minAge: 1m`))
}

func age(r *rand.Rand, rules *Rules) { rules.put("versions", "{minAge: %dm}", 1+r.IntN(4)) }

// hooking asks a user's controller before the reboot and before the uncordon.
func hooking(r *rand.Rand, rules *Rules) {
	rules.put("hooks", "{afterDrain: [{name: h, annotation: "+hookKey+", timeout: %dm, onTimeout: %s}], beforeUncordon: [{name: h, annotation: "+hookKey+
		", timeout: %dm, onTimeout: %s}]}", 1+r.IntN(4), pick(r, "abort", "abort", "ignore"), 1+r.IntN(4), pick(r, "abort", "ignore"))
}

// attaching is about volumes of pods that are gone.
func attaching(r *rand.Rand, rules *Rules) {
	rules.put("volumes", "{wait: %ds, onTimeout: %s}", pick(r, 0, 20, 60, 120), pick(r, "abort", "ignore"))
}

// verifying is about pods on the node, and workloads that it had.
func verifying(r *rand.Rand, rules *Rules) {
	rules.put("verify", "{%sdeadline: %dm, onWorkloads: %s}", pick(r, "", "pods: [{podSelector: {matchLabels: {"+appKey+": "+daemonApp+"}}}], "), 1+r.IntN(4),
		pick(r, "fail", "fail", "ignore"))
}

// marking is about load balancers and autoscalers.
func marking(r *rand.Rand, rules *Rules) {
	if r.IntN(3) == 0 {
		rules.put("autoscalers", "ignore")
	}
	rules.put("loadBalancers", "{exclude: %t, wait: %ds}", r.IntN(3) > 0, r.IntN(90))
}

func threshold(r *rand.Rand, rules *Rules) {
	rules.put("maxFailed", "%s", pick(r, "1", "1", "2", "3", "20%", "50%"))
}
