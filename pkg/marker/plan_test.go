package marker

import (
	"slices"
	"strings"
	"testing"

	"gotest.tools/v3/assert"
)

const planJSON = `{"name":"k3s","digest":"0123456789abcdef","proof":"kubeletVersion","effect":"restart","drain":"true","apply":"upgrade","deadline":"30m0s"}`

// planNode is the annotations of a node in an attempt of a plan.
func planNode() map[string]string {
	a := disrupted()
	a[string(KeyPlan)], a[string(KeyPlanTemplate)], a[string(KeyPlanDone)] = planJSON, "pull", `{"files":"fedcba9876543210"}`
	a[string(KeyTargetVersion)], a[string(KeyCurrentVersion)] = "k3s/v1.36.3+k3s1#0123456789abcdef", "k3s/v1.35.0+k3s1#0123456789abcdef"
	return a
}

// What an attempt of a plan does is read and written as the same, and what this build doesn't know is kept.
func TestPlanMark(t *testing.T) {
	a := planNode()
	a[string(KeyPlan)] = strings.TrimSuffix(planJSON, "}") + `,"later":[1]}`
	m := decode(t, a)
	assert.Equal(t, m.Plan.Name, "k3s")
	assert.Equal(t, m.Plan.Effect, EffectRestart)
	assert.Equal(t, m.Intent.Template, "pull")
	assert.DeepEqual(t, m.PlanDone, map[string]string{"files": "fedcba9876543210"})
	out := asRead(Encode(m))
	for _, k := range []Key{KeyPlan, KeyPlanTemplate, KeyPlanDone, KeyTargetVersion} {
		assert.Equal(t, out[string(k)], a[string(k)])
	}
	assert.Assert(t, len(Diff(a, Encode(m), WriterController)) == 0)
}

// A plan that can't be acted on leaves the node alone (S8).
func TestPlanMarkUnreadable(t *testing.T) {
	for _, change := range [][2]string{
		{`"k3s"`, `"K3S"`}, {`"0123456789abcdef"`, `"x"`}, {`kubeletVersion`, `bootID`}, {`"restart"`, `"explode"`}, {`"true"`, `"maybe"`},
		{`"upgrade"`, `""`}, {`30m0s`, `-1s`}, {`30m0s`, `soon`}, {`{`, `[`},
	} {
		a := planNode()
		a[string(KeyPlan)] = strings.Replace(planJSON, change[0], change[1], 1)
		_, problems := Decode(a)
		assert.Assert(t, slices.ContainsFunc(problems, func(p Problem) bool { return p.Key == KeyPlan }), "%v", change)
	}
	a := planNode()
	a[string(KeyPlanDone)] = "x"
	_, problems := Decode(a)
	assert.Equal(t, len(problems), 0, "content is then brought once more, no reason to stop")
}

// Versions of plans stand only where an attempt of a plan does: an agent of the Update API can't speak of them.
func TestPlanVersionsOutsideAPlan(t *testing.T) {
	a := planNode()
	delete(a, string(KeyPlan))
	_, problems := Decode(a)
	assert.Equal(t, len(problems), 2, "%v", problems)
	_, problems = DecodeReport(a)
	assert.Equal(t, len(problems), 1, "%v", problems)
	delete(a, string(KeyTargetVersion))
	a[string(KeyActionWanted)] = "stabilize"
	assert.Equal(t, decode(t, a).Report.Current, "", "what the runner said of the attempt that has just ended")
	a = disrupted()
	a[string(KeyFailure)] = `{"versions":["k3s/v1.36.3+k3s1#0123456789abcdef"],"count":1,"reason":"PodFailed","at":"2026-09-19T10:00:00Z","retryAfter":"2026-09-19T10:10:00Z"}`
	assert.Equal(t, len(decode(t, a).Failure.Versions), 1, "a failure is remembered beyond the attempt")
}

func TestComparePlanTargets(t *testing.T) {
	for _, tc := range []struct {
		a, b    string
		order   int
		ordered bool
	}{
		{"v1.36.3+k3s1", "v1.36.3+k3s1", 0, true},
		{"1.36.3", "v1.36.3", 0, true},
		{"v1.35.9+k3s4", "v1.36.3+k3s1", -1, true},
		{"v1.36.3+k3s1", "v1.36.3+k3s2", -1, true},
		{"v1.36.3+k3s10", "v1.36.3+k3s9", 1, true},
		{"v1.36.3+k3s1", "v1.36.3+rke2r1", 0, false},
		{"v1.36.3-rc1+k3s1", "v1.36.3+k3s1", -1, true},
		{"v1.36.3-rc1+k3s1", "v1.36.3-rc2+k3s1", 0, false},
		{"v1.36.3-rc1+k3s1", "v1.36.4-rc1+k3s1", -1, true},
		{"v1.36.3+a", "v1.36.3+a0", 0, true},
		{"Debian GNU/Linux 12 (bookworm)", "Debian GNU/Linux 13 (trixie)", 0, false},
		{"6.1.0-18-amd64", "6.1.0-9-amd64", 0, false},
		{"6.1.0-18-amd64", "6.2.0-9-amd64", -1, true},
		{"containerd://2.0.1", "containerd://2.0.2", 0, false},
	} {
		order, ordered := ComparePlanTargets(tc.a, tc.b)
		assert.Assert(t, order == tc.order && ordered == tc.ordered, "%s and %s: %d %t", tc.a, tc.b, order, ordered)
		order, ordered = ComparePlanTargets(tc.b, tc.a)
		assert.Assert(t, order == -tc.order && ordered == tc.ordered, "%s and %s: %d %t", tc.b, tc.a, order, ordered)
	}
}

// A node has a target that it shows, or a higher one; content is had by its digest alone.
func TestPlanHas(t *testing.T) {
	const d, e = "#0123456789abcdef", "#fedcba9876543210"
	for _, tc := range []struct {
		runs, version string
		want          bool
	}{
		{"k3s/v1.36.3+k3s1" + d, "k3s/v1.36.3+k3s1" + e, true},
		{"k3s/v1.36.3+k3s2" + d, "k3s/v1.36.3+k3s1" + d, true},
		{"k3s/v1.36.3+k3s1" + d, "k3s/v1.36.3+k3s2" + d, false},
		{"k3s/v1.36.3+k3s1" + d, "rke/v1.36.3+k3s1" + d, false},
		{"os/Debian 12" + d, "os/Debian 13" + d, false},
		{"os/Debian 13" + d, "os/Debian 12" + d, false},
		{"files/content" + d, "files/content" + d, true},
		{"files/content" + d, "files/content" + e, false},
		{"files/content#", "files/content" + e, false},
		{"k3s/v9.9.9" + d, "k3s/content" + d, false},
		{"k3s/content" + d, "k3s/content" + d, true},
		{"k3s/content" + d, "k3s/v1.36.3+k3s1" + d, false},
	} {
		assert.Equal(t, PlanHas(tc.runs, tc.version), tc.want, "%s has %s", tc.runs, tc.version)
	}
}

// Two plans are the same if they do the same; what is not known here doesn't count.
func TestPlanSame(t *testing.T) {
	p := decode(t, planNode()).Plan
	for i, change := range []func(*Plan){
		func(p *Plan) { p.Name = "x" }, func(p *Plan) { p.Digest = "x" }, func(p *Plan) { p.Proof = "x" }, func(p *Plan) { p.Effect = "x" },
		func(p *Plan) { p.Drain = "x" }, func(p *Plan) { p.Apply = "x" }, func(p *Plan) { p.Deadline = "x" },
	} {
		q := *p
		q.extra = nil
		assert.Assert(t, p.Same(&q))
		change(&q)
		assert.Assert(t, !p.Same(&q), "change %d", i)
	}
	assert.Equal(t, p.Within().Minutes(), 30.0)
	assert.Equal(t, p.Version("v1"), "k3s/v1#0123456789abcdef")
	assert.Equal(t, p.Done("01234567"), "k3s/content#01234567")
	assert.Equal(t, PlanVersion("k3s", "", ""), "k3s/?#")
}

func TestValidPlanTarget(t *testing.T) {
	for target, want := range map[string]bool{
		"": false, "~": true, " ": true, "a#b": false, "a\nb": false, "ä": false, strings.Repeat("a", 64): true, strings.Repeat("a", 65): false,
	} {
		assert.Equal(t, ValidPlanTarget(target), want, "%q", target)
	}
}

func TestShortVersion(t *testing.T) {
	for version, want := range map[string]string{
		"k3s/v1.36.3+k3s1#0123456789abcdef": "k3s/v1.36.3+k3s1", "files/content#0123456789abcdef": "files/content#0123456789abcdef",
		"1.27.0": "1.27.0", "": "",
	} {
		assert.Equal(t, ShortVersion(version), want)
	}
}

// FuzzPlanVersion: whatever a kubelet says, a version of it can be read again and is of its plan; and versions can be
// sorted.
func FuzzPlanVersion(f *testing.F) {
	f.Add("k3s", "v1.36.3+k3s1", "v1.36.3+k3s2", "0123456789abcdef")
	f.Add("os", "Debian GNU/Linux 12 (bookworm)", "a#b\n\xffä", "")
	f.Add("x", "", strings.Repeat("1.", 60), "00000000")
	f.Fuzz(func(t *testing.T, name, a, b, hex string) {
		if !ValidPlanName(name) || hex != "" && !digest.MatchString(hex) {
			return
		}
		all := []string{PlanVersion(name, a, hex), PlanVersion(name, b, hex), PlanVersion("z"+name[1:], a, hex), "1.2.3"}
		for _, v := range all[:3] {
			assert.Assert(t, ValidPlanVersion(v) && !ValidVersion(v) && len(v) <= maxToken, "%q", v)
			assert.Equal(t, PlanDigestOf(v), hex)
			assert.Equal(t, PlanVersion(PlanOf(v), PlanTargetOf(v), hex), v)
		}
		assert.Equal(t, PlanOf(all[0]), name)
		for _, x := range all {
			for _, y := range all {
				assert.Equal(t, CompareVersions(x, y), -CompareVersions(y, x), "%s %s", x, y)
				for _, z := range all {
					if CompareVersions(x, y) <= 0 && CompareVersions(y, z) <= 0 {
						assert.Assert(t, CompareVersions(x, z) <= 0, "%s %s %s", x, y, z)
					}
				}
			}
		}
	})
}
