package file_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/file"
)

func pinned(text string, p file.Pin) (string, error) {
	out, err := p.Write([]byte(text), time.LoadLocation)
	return string(out), err
}

// A pin changes its own lines and no other, wherever it stands.
func TestWritePin(t *testing.T) {
	to, back, canary := file.Pin{Version: "1.52.0"}, file.Pin{Version: "1.52.0", Downgrade: true}, file.Pin{Version: "1.52.0", Group: "canary"}
	canaryBack, out, canaryOut := file.Pin{Version: "1.52.0", Group: "canary", Downgrade: true}, file.Pin{}, file.Pin{Group: "canary"}
	const begins = "# ours\nversion: 1 # the format\n"
	const groups = "groups:\n- name: staging # first\n  nodeSelector: {}\n# the birds\n- name: canary\n  nodeSelector: {matchLabels: {a: b}}\n"
	for _, tc := range []struct {
		name, text string
		pin        file.Pin
		want       string
	}{
		{"nothing", "", to, "version: 1\nversions:\n  pin: 1.52.0\n"},
		{"nothing, to go down", "", back, "version: 1\nversions:\n  pin: 1.52.0\n  downgrade: true # for the pin\n"},
		{"comments alone", "# ours", to, "# ours\nversion: 1\nversions:\n  pin: 1.52.0\n"},
		{"nothing to take out of nothing", "", out, ""},
		{"no versions", begins + "\n# more\nmaxLost: 2\n", to, begins + "versions:\n  pin: 1.52.0\n\n# more\nmaxLost: 2\n"},
		{"the last line has no ending", "maxLost: 2\nversion: 1", back, "maxLost: 2\nversion: 1\nversions:\n  pin: 1.52.0\n  downgrade: true # for the pin"},
		{"versions of the fleet", begins + "versions: # which\n    # bad\n    deny: 1.51.x\nmaxLost: 2\n", to,
			begins + "versions: # which\n    pin: 1.52.0\n    # bad\n    deny: 1.51.x\nmaxLost: 2\n"},
		{"another pin", begins + "versions:\n  deny: 1.51.x\n  pin: 1.53.0   # since Monday\n  minAge: 1h\n", to,
			begins + "versions:\n  deny: 1.51.x\n  pin: 1.52.0   # since Monday\n  minAge: 1h\n"},
		{"another pin, to go down", begins + "versions:\n  pin: \"1.53.0\"\n  minAge: 1h\n", back,
			begins + "versions:\n  pin: \"1.52.0\"\n  downgrade: true # for the pin\n  minAge: 1h\n"},
		{"down is allowed", begins + "versions:\n  downgrade: true\n", back, begins + "versions:\n  pin: 1.52.0\n  downgrade: true\n"},
		{"down is not", begins + "versions:\n  downgrade: false # never\n  pin: '1.53.0'\n", back, begins + "versions:\n  downgrade: true # never\n  pin: '1.52.0'\n"},
		{"the same pin", begins + "versions: {pin: 1.52.0}\n", to, begins + "versions: {pin: 1.52.0}\n"},
		{"versions that are empty", begins + "versions: # none\nmaxLost: 2\n", to, begins + "versions: # none\n  pin: 1.52.0\nmaxLost: 2\n"},
		{"versions that are null", begins + "versions: ~\n", back, begins + "versions: {pin: 1.52.0, downgrade: true}\n"},
		{"a pin that is empty", begins + "versions:\n  pin:\n  minAge: 1h\n", to, begins + "versions:\n  pin: 1.52.0\n  minAge: 1h\n"},
		{"within braces", begins + "versions: {deny: 1.51.x}\n", back, begins + "versions: {pin: 1.52.0, downgrade: true, deny: 1.51.x}\n"},
		{"within empty braces", begins + "versions: {}\n", to, begins + "versions: {pin: 1.52.0}\n"},
		{"another within braces", begins + "versions: {pin: 1.53.0, minAge: 1h}\n", back, begins + "versions: {downgrade: true, pin: 1.52.0, minAge: 1h}\n"},
		{"within braces of many lines", begins + "versions: {\n  minAge: 1h, # an hour\n}\n", to, begins + "versions: {pin: 1.52.0, \n  minAge: 1h, # an hour\n}\n"},
		{"all within braces", "{version: 1, maxLost: 2}\n", to, "{version: 1, versions: {pin: 1.52.0}, maxLost: 2}\n"},
		{"JSON", "{\"version\": 1, \"versions\": {\"pin\": \"1.53.0\"}}\n", to, "{\"version\": 1, \"versions\": {\"pin\": \"1.52.0\"}}\n"},
		{"Windows", "version: 1\r\nversions:\r\n  minAge: 1h\r\nmaxLost: 2\r\n", to, "version: 1\r\nversions:\r\n  pin: 1.52.0\r\n  minAge: 1h\r\nmaxLost: 2\r\n"},
		{"a mark of the byte order", "\ufeffversion: 1\nmaxLost: 2\n", to, "\ufeffversion: 1\nversions:\n  pin: 1.52.0\nmaxLost: 2\n"},
		{"words of any language and tabs", "version: 1\t# äöü 日本\npause: {reason: \"日本 {\"}\nversions:\t{minAge: 1h}\t# ü\n", to,
			"version: 1\t# äöü 日本\npause: {reason: \"日本 {\"}\nversions:\t{pin: 1.52.0, minAge: 1h}\t# ü\n"},
		{"of a group", begins + groups, canary, begins + groups[:strings.Index(groups, "  nodeSelector: {m")] + "  versions:\n    pin: 1.52.0\n" + groups[strings.Index(groups, "  nodeSelector: {m"):]},
		{"of a group that begins with its versions", "version: 1\ngroups:\n  - versions: {minAge: 1h}\n    name: canary\n    nodeSelector: {}\n", canary,
			"version: 1\ngroups:\n  - versions: {pin: 1.52.0, minAge: 1h}\n    name: canary\n    nodeSelector: {}\n"},
		{"of a group within braces", "version: 1\ngroups: [{name: canary, nodeSelector: {}}]\n", canaryBack,
			"version: 1\ngroups: [{name: canary, versions: {pin: 1.52.0, downgrade: true}, nodeSelector: {}}]\n"},
		{"of a group with the fleet's leave to go down", "version: 1\nversions: {downgrade: true}\ngroups:\n- {name: canary, nodeSelector: {}}\n", canaryBack,
			"version: 1\nversions: {downgrade: true}\ngroups:\n- {name: canary, versions: {pin: 1.52.0}, nodeSelector: {}}\n"},
		{"of the fleet beside a group's", "version: 1\ngroups: [{name: canary, nodeSelector: {}, versions: {pin: 1.53.0}}]\n", to,
			"version: 1\nversions:\n  pin: 1.52.0\ngroups: [{name: canary, nodeSelector: {}, versions: {pin: 1.53.0}}]\n"},

		{"taken out", begins + "versions:\n  # why\n  pin: 1.52.0 # Monday\n  minAge: 1h\n", out, begins + "versions:\n  # why\n  minAge: 1h\n"},
		{"taken out with what came with it", begins + "versions:\n  pin: 1.52.0\n  downgrade: true # for the pin\nmaxLost: 2\n", out, begins + "maxLost: 2\n"},
		{"but not a user's", begins + "versions:\n  pin: 1.52.0\n  downgrade: true\nmaxLost: 2\n", out, begins + "versions:\n  downgrade: true\nmaxLost: 2\n"},
		{"versions with a comment stay", begins + "versions: # which\n  pin: 1.52.0\nmaxLost: 2\n", out, begins + "versions: # which\nmaxLost: 2\n"},
		{"taken out of the last line", begins + "versions:\n  pin: 1.52.0", out, begins},
		{"taken out of braces", begins + "versions: {pin: 1.52.0, minAge: 1h}\n", out, begins + "versions: {minAge: 1h}\n"},
		{"taken out of their end", begins + "versions: {minAge: 1h, pin: 1.52.0}\n", out, begins + "versions: {minAge: 1h}\n"},
		{"taken out of braces alone", begins + "versions: {pin: 1.52.0}\n", out, begins + "versions: {}\n"},
		{"taken out of many lines", begins + "versions: {\n  pin: 1.52.0, # x\n  minAge: 1h,\n}\n", out, begins + "versions: {\n  minAge: 1h,\n}\n"},
		{"taken out of a group", "version: 1\ngroups:\n- name: canary\n  versions:\n    pin: 1.52.0\n  nodeSelector: {}\n", canaryOut, "version: 1\ngroups:\n- name: canary\n  nodeSelector: {}\n"},
		{"taken out of a group that begins with it", "version: 1\ngroups:\n- versions:\n    pin: 1.52.0\n  name: canary\n  nodeSelector: {}\n", canaryOut,
			"version: 1\ngroups:\n- versions:\n  name: canary\n  nodeSelector: {}\n"},
		{"taken out where it says that there is none", "version: 1\nversions: {pin: 1.52.0}\ngroups:\n- {name: canary, nodeSelector: {}, versions: {pin: \"\"}}\n", canaryOut,
			"version: 1\nversions: {pin: 1.52.0}\ngroups:\n- {name: canary, nodeSelector: {}, versions: {pin: \"\"}}\n"},
		{"there is none", begins, out, begins},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := pinned(tc.text, tc.pin)
			assert.NilError(t, err)
			assert.Equal(t, got, tc.want)
			if tc.pin.Version == "" {
				return
			}
			again, err := pinned(got, tc.pin)
			assert.NilError(t, err)
			assert.Equal(t, again, got, "the same pin again changes nothing")
		})
	}
}

// What can't be changed without touching more is refused in one line that says what to do.
func TestWritePinRefuses(t *testing.T) {
	to, canary, out := file.Pin{Version: "1.52.0"}, file.Pin{Version: "1.52.0", Group: "canary"}, file.Pin{}
	const byHand = "the policy's text can't be changed in these lines alone, since "
	for _, tc := range []struct {
		name, text string
		pin        file.Pin
		want       string
	}{
		{"no version", "version: 1\n", file.Pin{Version: "latest"}, `"latest" is not a version: give one such as 1.27.0`},
		{"a policy with a mistake", "version: 1\nsoka: 1m\n", to, "line 2: there is no field soka: the nearest is soak"},
		{"two documents", "version: 1\n---\nversion: 1\n", to, "line 2: there is another document after the policy: give one document"},
		{"a hold", "version: 1\nversions: {hold: 1.51.0}\n", to,
			"the policy has versions.hold: 1.51.0, and a pin can't stand beside it: take the hold out of the policy, then say this again"},
		{"a group's hold", "version: 1\ngroups: [{name: canary, nodeSelector: {}, versions: {hold: 1.51.0}}]\n", to,
			"of group canary the policy has versions.hold: 1.51.0, and a pin can't stand beside it: take the hold out of the policy, then say this again"},
		{"the fleet's hold", "version: 1\nversions: {hold: 1.51.0}\ngroups: [{name: canary, nodeSelector: {}}]\n", canary,
			"the policy has versions.hold: 1.51.0, and a pin can't stand beside it: take the hold out of the policy, then say this again"},
		{"denied", "version: 1\nversions:\n  deny: 1.52.x\n", to,
			"with versions.pin: 1.52.0: line 3: versions.pin is 1.52.0, which versions.deny denies: nothing would ever start"},
		{"no such group", "version: 1\n", canary, `group "canary" is not in the policy: it has []`},
		{"no such group in nothing", "", canary, `group "canary" is not in the policy, which is empty`},
		{"the fleet's pin", "version: 1\nversions: {pin: 1.51.0}\ngroups: [{name: canary, nodeSelector: {}}]\n", file.Pin{Group: "canary"},
			"group canary has no pin of its own, the fleet's versions.pin: 1.51.0 holds for it: take out that one, or give the group another pin"},
		{"an alias", "version: 1\ngroups: [{name: a, nodeSelector: {}, versions: &v {minAge: 1h}}, {name: canary, nodeSelector: {}, versions: *v}]\n", canary,
			byHand + "versions in line 2 is an alias: write versions.pin: 1.52.0 by hand"},
		{"what others refer to", "version: 1\ngroups: [{name: canary, nodeSelector: {}, versions: &v {minAge: 1h}}, {name: b, nodeSelector: {}, versions: *v}]\n", canary,
			byHand + "versions in line 2 does not begin with a brace: write versions.pin: 1.52.0 by hand"},
		{"a pin with an anchor", "version: 1\nversions: {pin: &p 1.51.0}\n", out, byHand + "pin in line 2 is no plain value: take versions.pin out by hand"},
		{"what others refer to in lines", "version: 1\ngroups:\n- name: canary\n  nodeSelector: {}\n  versions: &v\n    minAge: 1h\n- {name: b, nodeSelector: {}, versions: *v}\n", canary,
			byHand + "more would change than the pin: write versions.pin: 1.52.0 by hand"},
		{"a name of many lines", "version: 1\ngroups:\n- name: |-\n    canary\n  nodeSelector: {}\n", canary, byHand + "name in line 3 is no plain value: write versions.pin: 1.52.0 by hand"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := pinned(tc.text, tc.pin)
			assert.Error(t, err, tc.want)
		})
	}
}

// A pin that is taken out again leaves the text that was there.
func TestPinAndBack(t *testing.T) {
	for _, text := range []string{"version: 1\n", "version: 1\r\nversions:\r\n  minAge: 1h\r\n", "version: 1\nversions:\n  deny: 1.50.x\n"} {
		there, err := pinned(text, file.Pin{Version: "1.52.0", Downgrade: true})
		assert.NilError(t, err)
		back, err := pinned(there, file.Pin{})
		assert.NilError(t, err)
		assert.Equal(t, back, text)
	}
}

// Whatever the policy: with a pin it says the same but for the pin, and all of its other lines stand as they stood.
func FuzzWritePin(f *testing.F) {
	for _, text := range []string{"", "# x", "version: 1\n", string(example), "version: 1\nversions:\n  # x\n  deny: 1.51.x\n  pin: 1.50.0 # y\n", "{version: 1, versions: {pin: 1.50.0}}",
		"version: 1\r\nversions: {\r\n minAge: 1h,\r\n pin: '1.50.0',\r\n}\r\n", "\ufeffversion: 1\nversions: ~\ngroups:\n- name: canary\n  nodeSelector: {}\n- {name: b, nodeSelector: {}, versions: {downgrade: false}}\n",
		"version: 1\nversions: &v\n  minAge: 1h\ngroups: [{name: canary, nodeSelector: {}, versions: *v}]\n", "%YAML 1.1\n---\n? version\n: 1\n...\n", "version: 1\u2028versions:\r  pin:\n",
		"version: 1\nversions:\n  pin: 1.50.0\n  downgrade: true # for the pin\n# z"} {
		f.Add(text, uint8(0))
		f.Add(text, uint8(1))
		f.Add(text, uint8(7))
	}
	f.Fuzz(func(t *testing.T, text string, how uint8) {
		p := file.Pin{}
		if how&1 != 0 {
			p.Version, p.Downgrade = "1.52.0", how&2 != 0
		}
		if how&4 != 0 {
			p.Group = "canary"
		}
		got, err := pinned(text, p)
		if err != nil {
			assert.Assert(t, !strings.Contains(err.Error(), "\n") || strings.HasPrefix(err.Error(), "line "), err.Error())
			return
		}
		if p.Version == "" && got == text {
			return
		}
		set, err := decode(got)
		if err == nil && p.Version != "" {
			var versions *policy.HostVersions
			if at := slices.IndexFunc(set.Groups, func(g policy.Group) bool { return g.Name == p.Group }); p.Group != "" {
				versions = &set.Groups[at].Versions
			} else {
				versions = &set.Versions
			}
			assert.Equal(t, versions.Pin, p.Version)
			assert.Assert(t, versions.Downgrade || !p.Downgrade)
		}
		assert.NilError(t, err)
		// What comes and goes are lines of the pin, or such as have it within braces.
		lines := func(of string) map[string]int {
			count := map[string]int{}
			for l := range strings.FieldsFuncSeq(of, func(c rune) bool { return strings.ContainsRune("\r\n\u0085\u2028\u2029", c) }) {
				count[l]++
			}
			return count
		}
		before, after := lines(text), lines(got)
		for _, each := range []struct{ from, to map[string]int }{{before, after}, {after, before}} {
			for l, n := range each.from {
				touched := strings.Contains(l, "pin") || strings.Contains(l, "downgrade") || strings.Contains(l, "version") || strings.Contains(l, "name") || strings.Contains(l, "{")
				assert.Assert(t, each.to[l] == n || touched, "line %q of %q is not as it was in %q", l, text, got)
			}
		}
		again, err := pinned(got, p)
		assert.NilError(t, err)
		assert.Equal(t, again, got)
	})
}
