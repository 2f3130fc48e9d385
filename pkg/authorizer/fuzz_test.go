package authorizer

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/authorizer/rule"
)

// FuzzJudge holds S4 with an oracle that shares no code with the rule: an agent writes only its own
// Node's report, only as an answer to the current intent, and only from what it saw there.
func FuzzJudge(f *testing.F) {
	const until = "2026-03-01T13:00:00Z"
	type seed struct {
		flags, set                                                                 uint32
		minutes                                                                    int
		action, id, until, target, from, liveID, liveState, liveBoot, extra        string
		activeID, state, message, available, current, boot, protocol, version, odd string
	}
	ok := seed{set: 1<<1 | 1<<2, action: "reboot-update", id: intentID, until: until, target: target, from: oldBoot,
		activeID: intentID, state: "busy", boot: oldBoot, current: "1.19.0", protocol: "1", version: "v1", odd: "true"}
	for _, change := range []func(s *seed){
		func(*seed) {},
		func(s *seed) { s.flags = 1 },
		func(s *seed) { s.flags = 2 },
		func(s *seed) { s.flags = 4 },
		func(s *seed) { s.flags, s.action = 2+64, "stabilize" },
		func(s *seed) { s.flags, s.action = 2+64+128, "stabilize" },
		func(s *seed) { s.flags, s.action, s.odd = 2+256, "stabilize", `{"giveBack":true}` },
		func(s *seed) { s.flags = 2 + 64 + 128 },
		func(s *seed) { s.flags = 8 },
		func(s *seed) { s.flags, s.extra = 16, "example.com/theirs" },
		func(s *seed) { s.flags, s.extra = 16, "bottlerocket.aws/intent-until" },
		func(s *seed) { s.minutes = 60 },
		func(s *seed) { s.liveID, s.liveState = intentID, "error" },
		func(s *seed) { s.liveID, s.liveState, s.set = intentID, "busy", 1<<2 },
		func(s *seed) { s.activeID = "intent-6" },
		func(s *seed) { s.state, s.boot, s.set = "ready", newBoot, 1<<1|1<<2|1<<6 },
		func(s *seed) { s.state, s.message, s.set = "error", "it broke", 1<<1|1<<2|1<<3 },
		func(s *seed) { s.state = "error" },
		func(s *seed) {
			s.action, s.state, s.liveID, s.liveState = "prepare-update", "ready", intentID, "error"
		},
		func(s *seed) {
			s.action, s.state, s.liveID, s.liveState, s.current, s.set = "prepare-update", "ready", intentID, "error", target, 1<<1|1<<2|1<<5
		},
		func(s *seed) { s.set = 1<<5 | 1<<6 | 1<<7 | 1<<8 | 1<<9 | 1<<10 },
		func(s *seed) { s.set, s.current = 1<<5, "v1.19.0" },
		func(s *seed) { s.until = "later" },
		func(s *seed) { s.until, s.state, s.message, s.set = "later", "error", "it broke", 1<<1|1<<2|1<<3 },
		func(s *seed) { s.state = "ready" },
		func(s *seed) { s.state, s.set = "ready", 1<<1|1<<2|1<<6 },
		func(s *seed) { s.boot, s.set = newBoot, 1<<1|1<<2|1<<6 },
		func(s *seed) { s.version, s.set = "v1\x1b[31m", 1<<8 },
		func(s *seed) { s.message, s.set, s.state = "a\x00b", 1<<3, "" },
	} {
		s := ok
		change(&s)
		f.Add(s.flags, s.set, s.minutes, s.action, s.id, s.until, s.target, s.from, s.liveID, s.liveState, s.liveBoot, s.extra,
			s.activeID, s.state, s.message, s.available, s.current, s.boot, s.protocol, s.version, s.odd)
	}
	f.Fuzz(func(t *testing.T, flags, set uint32, minutes int, action, id, until, target, from, liveID, liveState, liveBoot, extra,
		activeID, state, message, available, current, boot, protocol, version, odd string) {
		l := liveNode(map[string]string{})
		put := func(k, v string) {
			if v != "" {
				l.Annotations["bottlerocket.aws/"+k] = v
			}
		}
		put("action-wanted", action)
		put("intent-id", id)
		put("intent-time", "2026-03-01T12:00:00Z")
		put("intent-until", until)
		put("target-version", target)
		put("reboot-from", from)
		put("active-id", liveID)
		put("action-state", liveState)
		put("boot-id", liveBoot)
		put("current-version", current)
		p := Patch{ResourceVersion: l.ResourceVersion, Annotations: map[string]*string{}}
		// The patch's bit sets a key, the one 16 higher deletes it.
		for i, v := range []string{"", activeID, state, message, available, current, boot, protocol, version, odd, odd} {
			k := "bottlerocket.aws/" + agentKeys[max(i-1, 0)]
			switch {
			case i == 0:
			case set&(1<<i) != 0:
				p.Annotations[k] = &v
			case set&(1<<(i+16)) != 0:
				p.Annotations[k] = nil
			}
		}
		w := Write{NodeName: agent.NodeName, NodeUID: agent.NodeUID, Live: l, Patch: p, Now: noon.Add(time.Duration(minutes%180) * time.Minute)}
		if flags&1 != 0 {
			w.Live.Unschedulable = false
		}
		if flags&2 != 0 {
			w.Live.Annotations["bottlerocket.aws/paused"] = ""
		}
		if flags&64 != 0 {
			w.Live.Annotations["bottlerocket.aws/lock"] = `{"want":"latest","before":"latest","giveBack":` + strconv.FormatBool(flags&128 != 0) + `}`
		}
		if flags&256 != 0 {
			w.Live.Annotations["bottlerocket.aws/lock"] = odd
		}
		if flags&4 != 0 {
			w.Live.Name += "x"
		}
		if flags&8 != 0 {
			w.Live.UID += "x"
		}
		if flags&16 != 0 {
			w.Patch.Annotations[extra] = &odd
		}
		if flags&32 != 0 {
			w.Patch.ResourceVersion = extra
		}
		refusal := rule.Judge(w)
		if refusal == nil {
			allowed(t, w)
			return
		}
		assert.Assert(t, slices.Contains(rule.Reasons(), refusal.Reason), refusal.Reason)
		assert.Assert(t, refusal.Message != "" && len(refusal.Message) < 1000, "%q", refusal.Message)
		if flags == 0 && set != 0 && set&^(1<<4|1<<5) == 0 && semantic(available) && semantic(current) {
			t.Errorf("facts that are in order were refused: %s", refusal.Message)
		}
	})
}

// agentKeys are the keys that design gives to the agent, after the prefix.
var agentKeys = []string{"active-id", "action-state", "message", "available-version", "current-version", "boot-id", "activated-id", "protocol",
	"operator-version", "action-active", "update-available", "reason", "offered-versions", "version-lock", "wave-seed"}

// givesBack tells for a lock that is in order if it is given back.
func givesBack(lock string) bool {
	var l struct {
		Want, Before string
		GiveBack     bool
	}
	return json.Unmarshal([]byte(lock), &l) == nil && l.Want != "" && l.Before != "" && l.GiveBack
}

// semantic tells for the usual versions if they are some.
func semantic(v string) bool {
	return regexp.MustCompile(`^(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})$`).MatchString(v)
}

// allowed asserts all that must be true of a write that goes on.
func allowed(t *testing.T, w Write) {
	t.Helper()
	assert.Assert(t, w.Live.Name == "node-1" && w.Live.UID == "uid-1", "another node")
	assert.Assert(t, w.Patch.ResourceVersion != "" && w.Patch.ResourceVersion == w.Live.ResourceVersion, "not from the current resourceVersion")
	before, after := map[string]string{}, map[string]string{}
	for k, v := range w.Live.Annotations {
		before[strings.TrimPrefix(k, "bottlerocket.aws/")], after[strings.TrimPrefix(k, "bottlerocket.aws/")] = v, v
	}
	for k, v := range w.Patch.Annotations {
		name, own := strings.CutPrefix(k, "bottlerocket.aws/")
		assert.Assert(t, own && slices.Contains(agentKeys, name), "key %q", k)
		if v == nil {
			delete(after, name)
			continue
		}
		after[name] = *v
		assert.Assert(t, utf8.ValidString(*v) && (len(*v) <= 256 || name == "offered-versions" && len(*v) <= 512), "%q", *v)
		for _, r := range *v {
			assert.Assert(t, unicode.IsPrint(r), "%q", *v)
		}
		if name == "reason" {
			assert.Assert(t, slices.Contains([]string{"AnotherUpdater", "UnrequestedActivation", "InterfaceUnsupported", "RepositoryUnavailable", "LockFailed", "LockedByOthers",
				"PodFailed", "NoEffect", "PodRefused", "Interrupted"}, *v), "%q", *v)
		}
		if name == "activated-id" {
			assert.Equal(t, *v, before["intent-id"])
		}
		if name == "action-active" || name == "update-available" {
			assert.Assert(t, *v == "true" || *v == "false", "%q", *v)
		}
	}

	changed, touched := false, false
	for _, k := range []string{"active-id", "action-state", "reason", "message"} {
		was, had := before[k]
		is, has := after[k]
		changed = changed || had != has || was != is
		_, t := w.Patch.Annotations["bottlerocket.aws/"+k]
		touched = touched || t
	}
	if !changed && (!touched || after["action-state"] != "busy") {
		return
	}
	assert.Assert(t, before["intent-id"] != "" && after["active-id"] == before["intent-id"], "an answer to %q while %q is the current intent", after["active-id"], before["intent-id"])
	assert.Assert(t, slices.Contains([]string{"stabilize", "prepare-update", "reboot-update", "reset-state"}, before["action-wanted"]))
	until, err := time.Parse(time.RFC3339, before["intent-until"])
	assert.NilError(t, err, "an answer to an intent without an end")
	answered := ""
	if before["active-id"] == before["intent-id"] {
		answered = before["action-state"]
	}
	reboot := before["action-wanted"] == "reboot-update"
	switch after["action-state"] {
	case "busy":
		_, paused := before["paused"]
		back := before["action-wanted"] == "stabilize" && givesBack(before["lock"])
		assert.Assert(t, !paused || back, "begins while paused")
		assert.Assert(t, w.Now.Before(until), "begins too late")
		assert.Assert(t, answered == "" || answered == "busy", "begins after %q", answered)
		if reboot {
			assert.Assert(t, w.Live.Unschedulable, "reboots without a cordon")
			assert.Assert(t, after["boot-id"] == "" || after["boot-id"] == before["reboot-from"], "reboots twice")
		}
	case "ready":
		if reboot {
			assert.Assert(t, after["boot-id"] != "" && after["boot-id"] != before["reboot-from"], "no reboot shows")
		}
		if before["action-wanted"] == "prepare-update" && answered == "error" {
			assert.Equal(t, after["current-version"], before["target-version"])
		}
	case "error":
		assert.Assert(t, after["message"] != "", "an error without a word")
	default:
		t.Fatalf("answer %q", after["action-state"])
	}
}

// FuzzParse: a request in form asks for one node by its name, or for a list or a watch that shows only
// this one; its query says nothing that wasn't judged, and it accepts metadata alone.
func FuzzParse(f *testing.F) {
	f.Add("GET", "/api/v1/nodes/node-1", acceptOfGets)
	f.Add("GET", "/api/v1/nodes/node-1?resourceVersion=0", "*/*")
	f.Add("PATCH", "/api/v1/nodes/node-1?fieldManager=x&fieldValidation=Strict", acceptOfGets)
	f.Add("PATCH", "/api/v1/nodes/node-1?dryRun=All", acceptOfGets)
	f.Add("GET", "/api/v1/nodes?fieldSelector=metadata.name%3Dnode-1&watch=true&timeoutSeconds=9999", acceptOfLists)
	f.Add("GET", "/api/v1/nodes?fieldSelector=metadata.name%3Dnode-1,spec.unschedulable%3Dtrue&watch=T", acceptOfLists)
	f.Add("GET", "/api/v1/nodes?watch=1&watch=0&fieldSelector=metadata.name%3Dnode-1", acceptOfLists)
	f.Add("GET", "/api/v1/nodes?limit=1&limit=2&fieldSelector=metadata.name%3Dnode-1", acceptOfLists)
	f.Add("GET", "/api/v1/nodes/..", acceptOfGets)
	f.Add("GET", "/api/v1/nodes/a%2Fb", acceptOfGets)
	f.Add("GET", "/api/v1/nodes/node-1", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1;charset=x,application/json")
	clause := regexp.MustCompile(`^application/(json|vnd\.kubernetes\.protobuf);as=PartialObjectMetadata(List)?;g=meta\.k8s\.io;v=v1$`)
	f.Fuzz(func(t *testing.T, method, target, accept string) {
		u, err := url.ParseRequestURI(target)
		if err != nil {
			return
		}
		c, refusal := parse(&http.Request{Method: method, URL: u, Header: http.Header{"Accept": {accept}}})
		if refusal != nil {
			assert.Assert(t, slices.Contains(rule.Reasons(), refusal.Reason) && len(refusal.Message) < 1000)
			assert.Assert(t, c.verb == "" && c.node == "")
			return
		}
		for part := range strings.SplitSeq(c.accept, ",") {
			assert.Assert(t, clause.MatchString(part), "%q", c.accept)
		}
		assert.Assert(t, c.node != "")
		for k, v := range c.query {
			assert.Equal(t, len(v), 1, k)
		}
		switch c.verb {
		case "get", "patch":
			assert.Assert(t, method == map[verb]string{"get": "GET", "patch": "PATCH"}[c.verb])
			assert.Equal(t, c.path(), "/api/v1/nodes/"+c.node)
			assert.Assert(t, !strings.Contains(c.node, "/"), c.node)
			if c.verb == "patch" {
				assert.DeepEqual(t, c.query, url.Values{"fieldManager": {"bottlerocket-update-agent"}})
			} else {
				c.query.Del("resourceVersion")
				assert.Equal(t, len(c.query), 0)
			}
		case "list", "watch":
			assert.Equal(t, method, "GET")
			assert.Equal(t, c.path(), "/api/v1/nodes")
			assert.Equal(t, c.query.Get("fieldSelector"), "metadata.name="+c.node)
			assert.Assert(t, !strings.ContainsAny(c.node, ",=!\\"), c.node)
			assert.Equal(t, c.query.Get("watch") == "true", c.verb == "watch")
			assert.Assert(t, !c.query.Has("labelSelector"))
		default:
			t.Fatalf("verb %q", c.verb)
		}
	})
}
