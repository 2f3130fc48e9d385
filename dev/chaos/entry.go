package chaos

import (
	"bytes"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AuditPolicy is what the API server must log for the judge: every write of what the promises are about
// with its objects, and whatever answer shows one of them.
const AuditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: None
  namespaces: [kube-node-lease]
- level: None
  users: [admin]
  verbs: [get, list, watch]
  resources:
  - group: ""
    resources: [pods, secrets]
- level: RequestResponse
  verbs: [create, update, patch, delete, get, list]
  resources:
  - group: ""
    resources: [nodes, nodes/status, pods, pods/status, pods/binding, pods/eviction]
- level: RequestResponse
  namespaces: [bottlerocket]
  verbs: [create, update, patch, delete, get]
  resources:
  - group: ""
    resources: [configmaps]
- level: Metadata
`

// Entry is one line of the audit log, as far as the judge looks.
type Entry struct {
	Stage      string           `json:"stage"`
	Verb       string           `json:"verb"`
	RequestURI string           `json:"requestURI"`
	Received   metav1.MicroTime `json:"requestReceivedTimestamp"`
	Answered   metav1.MicroTime `json:"stageTimestamp"`
	User       struct {
		Username string `json:"username"`
	} `json:"user"`
	Object struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	Answer struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	Request  json.RawMessage `json:"requestObject"`
	Response json.RawMessage `json:"responseObject"`
}

func (e *Entry) writes() bool {
	switch e.Verb {
	case "get", "list", "watch":
		return false
	}
	return !e.dry()
}

// dry reports whether nothing was to be stored: controller and proxies ask so whether their admission policy stands.
func (e *Entry) dry() bool { return strings.Contains(e.RequestURI, "dryRun=All") }

func (e *Entry) succeeded() bool { return e.Answer.Code >= 200 && e.Answer.Code < 300 }

// uncertain reports whether the outcome of a write is unknown.
func (e *Entry) uncertain() bool { return e.writes() && (e.Answer.Code >= 500 || e.Answer.Code == 0) }

// resource has its subresource behind a slash, as in a role.
func (e *Entry) resource() string {
	if e.Object.Subresource != "" {
		return e.Object.Resource + "/" + e.Object.Subresource
	}
	return e.Object.Resource
}

// Log is an audit log.
type Log struct {
	// Entries are in the order of the log, each request once.
	Entries []*Entry
	// Torn counts lines that a killed API server did not write to their end.
	Torn int
}

// ReadLog reads an audit log. A line that is still being written is left out.
func ReadLog(path string) (Log, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return Log{}, errors.Wrap(err, "reading the audit log")
	}
	return parseLog(content), nil
}

// eventStart is how every line begins.
var eventStart = []byte(`{"kind":"Event"`)

func parseLog(content []byte) Log {
	var log Log
	for len(content) > 0 {
		line, rest, whole := bytes.Cut(content, []byte("\n"))
		content = rest
		if !whole {
			break
		}
		e := &Entry{}
		if json.Unmarshal(line, e) != nil {
			// The next server went on where the killed one stopped: its own event is whole.
			log.Torn++
			at := bytes.LastIndex(line, eventStart)
			if e = (&Entry{}); at <= 0 || json.Unmarshal(line[at:], e) != nil {
				continue
			}
		}
		if e.Stage == "ResponseStarted" {
			continue // of a watch; its end comes too
		}
		log.Entries = append(log.Entries, e)
	}
	return log
}

// versionOf reads a resourceVersion, 0 for none. Those of all objects in one store can be compared.
func versionOf(s string) uint64 {
	v, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0
	}
	return v
}

// The operator's accounts.
const (
	accounts          = "system:serviceaccount:bottlerocket:"
	controllerAccount = accounts + "update-operator-controller"
	proxyAccount      = accounts + "update-operator-proxy"
	agentAccount      = accounts + "update-operator-agent"
)

func isOperator(user string) bool { return strings.HasPrefix(user, accounts) }

// Window is a time.
type Window struct{ From, To time.Time }

func (w Window) meets(from, to time.Time) bool { return !from.After(w.To) && !to.Before(w.From) }
