package hostile

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// forged stands where a line would begin if a word made one.
const forged = "FORGED"

// Words are named by what they do. Each is valid UTF-8 but the one that isn't.
func Words() map[string]string {
	return map[string]string{
		"clears the screen":       "a\x1b[2Jb",
		"a C1 sequence":           "a\u009b2Jb",
		"turns around":            "a\u202eb",
		"isolates":                "a\u2066b",
		"a newline":               "a\n" + forged,
		"a carriage return":       "a\r" + forged,
		"NUL":                     "a\x00b",
		"DEL":                     "a\x7fb",
		"a next line":             "a\u0085" + forged,
		"a line separator":        "a\u2028" + forged,
		"of no width":             "a\u200bb",
		"a mark of byte order":    "a\ufeffb",
		"a tag of the last plane": "a\U000e0041b",
		"no UTF-8":                "a\xff\xfe\xc2",
		"very long":               strings.Repeat("x", 9_000),
		"a very long number":      strings.Repeat("9", 3_000),
	}
}

// shown is how much of a value is shown at most, in bytes.
const shown = 1024

// Obeyed returns an error if a word got out: if there is anything in a text that a terminal doesn't just show, but
// newlines, or a line that a word has made, or very much of one.
func Obeyed(text string) error {
	if !utf8.ValidString(text) {
		return errors.Errorf("it isn't UTF-8: %.300q", text)
	}
	for i, r := range text {
		if r != '\n' && !unicode.IsPrint(r) {
			return errors.Errorf("it has %U: %.300q", r, text[max(0, i-40):])
		}
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), forged) {
			return errors.Errorf("a line is forged: %.300q", text)
		}
		if strings.Contains(line, strings.Repeat("x", shown+1)) || strings.Contains(line, strings.Repeat("9", shown+1)) {
			return errors.Errorf("it has %d bytes in a line: %.300q", len(line), line)
		}
	}
	return nil
}

// Node is a labelled Node with a word in every place that its kubelet, or root on it, may write into. One that isn't
// readable has the word as it is in each of the operator's annotations; one that is has it where a readable value can.
func Node(name, word string, readable bool) *corev1.Node {
	annotations := map[string]string{"example.com/other": word, "cluster-autoscaler.kubernetes.io/scale-down-disabled": word}
	mark := func(key, value string) { annotations["bottlerocket.aws/"+key] = value }
	// As JSON can say it too.
	var escaped strings.Builder
	// All of a Node's annotations have 256 KiB at most.
	for _, r := range word[:min(len(word), 600)] {
		if r < 0x10000 {
			fmt.Fprintf(&escaped, `\u%04x`, r)
		}
	}
	quoted := `"` + escaped.String() + `"`
	if readable {
		for key, value := range map[string]string{"intent-id": "7-x", "action-wanted": "stabilize", "intent-time": "2026-01-05T11:00:00Z",
			"intent-until": "2026-01-05T11:45:00Z", "active-id": "7-x", "action-state": "error", "current-version": "1.50.0",
			"available-version": "1.51.0", "boot-id": "boot-1", "protocol": "2"} {
			mark(key, value)
		}
		short := word[:min(len(word), 60)]
		mark("message", short)
		mark("operator-version", short)
		mark("paused", word)
		mark("waiting-for", "Draining: "+word)
		if len(quoted) < 1000 {
			mark("failure", `{"versions":["1.51.0"],"count":1,"reason":`+quoted+`,"message":`+quoted+`,"at":"2026-01-05T11:00:00Z","retryAfter":"2026-01-06T11:00:00Z"}`)
			mark("history", `[{"version":`+quoted+`,"outcome":`+quoted+`,"reason":`+quoted+`,"started":"2026-01-05T11:00:00Z","ended":"2026-01-05T11:30:00Z"}]`)
		}
	} else {
		for _, key := range []string{"intent-id", "action-wanted", "intent-time", "intent-until", "target-version", "reboot-from", "waiting-for", "paused",
			"active-id", "action-state", "reason", "message", "available-version", "offered-versions", "current-version", "version-lock", "wave-seed", "boot-id", "activated-id", "protocol", "operator-version", "hook-id"} {
			mark(key, word)
		}
		mark("disruption", `{"since":`+quoted+`,"ready":`+quoted+`,"before":{`+quoted+`:`+quoted+`},"workloads":{`+quoted+`:1}}`)
		mark("failure", `{"versions":[`+quoted+`],"broken":[`+quoted+`],"count":`+strings.Repeat("9", 3000)+`}`)
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations, Labels: map[string]string{"bottlerocket.aws/updater-interface-version": "2.0.0"}}}
	i := &n.Status.NodeInfo
	for _, field := range []*string{&i.MachineID, &i.SystemUUID, &i.BootID, &i.KernelVersion, &i.ContainerRuntimeVersion, &i.KubeletVersion, &i.OperatingSystem, &i.Architecture} {
		*field = word
	}
	i.OSImage = "Bottlerocket OS " + word
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionStatus(word), Reason: word, Message: word},
		{Type: corev1.NodeConditionType(word), Status: corev1.ConditionTrue, Message: word}}
	return n
}
