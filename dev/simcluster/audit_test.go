package simcluster_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/simcluster"
)

// request is one line of the audit log, as far as tests look.
type request struct {
	Stage      string           `json:"stage"`
	Verb       string           `json:"verb"`
	RequestURI string           `json:"requestURI"`
	Received   metav1.MicroTime `json:"requestReceivedTimestamp"`
	User       struct {
		Username string `json:"username"`
	} `json:"user"`
	Object *struct {
		APIGroup    string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	Answer struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	// Response is what came of a request, where the audit policy has it.
	Response json.RawMessage `json:"responseObject"`
}

// account is the user name of a component's service account.
func account(component string) string {
	return "system:serviceaccount:" + simcluster.Namespace + ":update-operator-" + component
}

// resource has its subresource behind a slash, as in a role; it is empty for a request of no object.
func (r request) resource() string {
	switch {
	case r.Object == nil:
		return ""
	case r.Object.Subresource != "":
		return r.Object.Resource + "/" + r.Object.Subresource
	}
	return r.Object.Resource
}

func (r request) writes() bool {
	switch r.Verb {
	case "get", "list", "watch":
		return false
	}
	return !r.dry()
}

// dry reports whether nothing was to be stored: controller and proxies ask so whether their admission policies stand.
func (r request) dry() bool { return strings.Contains(r.RequestURI, "dryRun=All") }

func (r request) succeeded() bool { return r.Answer.Code >= 200 && r.Answer.Code < 300 }

func (r request) String() string {
	return fmt.Sprintf("%s %s %s %s: %d", r.Received.Format(time.RFC3339Nano), r.User.Username, r.Verb, r.RequestURI, r.Answer.Code)
}

// requests are those in the audit log that were received since a time, one for each; a watch counts when
// it begins. A line that is still being written is left for the next look.
func (w *world) requests(t *testing.T, since time.Time) []request {
	t.Helper()
	content, err := os.ReadFile(w.Plane.AuditLog())
	assert.NilError(t, err)
	whole := content[:bytes.LastIndexByte(content, '\n')+1]
	var list []request
	lines := bufio.NewScanner(bytes.NewReader(whole))
	lines.Buffer(nil, 1<<22)
	for lines.Scan() {
		var r request
		assert.NilError(t, json.Unmarshal(lines.Bytes(), &r))
		again := r.Verb == "watch" && r.Stage == "ResponseComplete"
		if again || r.Received.Time.Before(since) {
			continue
		}
		list = append(list, r)
	}
	assert.NilError(t, lines.Err())
	return list
}

// operator keeps the requests of the operator's own accounts.
func operator(all []request) []request {
	var list []request
	for _, r := range all {
		if strings.HasPrefix(r.User.Username, "system:serviceaccount:"+simcluster.Namespace+":") {
			list = append(list, r)
		}
	}
	return list
}
