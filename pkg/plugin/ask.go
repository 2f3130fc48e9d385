package plugin

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// answerWithin is how long the leader's answer is awaited: its host may be the one that is down.
const answerWithin = 30 * time.Second

// policyFile is one that a plan is to go by.
type policyFile struct {
	name    string
	content []byte
}

// ask returns the leader's own plan, which it serves as /plan, by way of the API server: the one by what is in force,
// or the one by a policy file.
func (p *plugin) ask(ctx context.Context, client kubernetes.Interface, by *policyFile) (plan.Plan, error) {
	var out plan.Plan
	pod, err := p.leader(ctx, client)
	if err != nil {
		return out, errors.WithMessage(err, "only the leading controller can show its plan")
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	request, verb := client.CoreV1().RESTClient().Get(), "get"
	if by != nil {
		request, verb = client.CoreV1().RESTClient().Post().Body(by.content).SetHeader("Content-Type", "application/yaml"), "create"
	}
	var status int
	// The port is the first one that the pod declares.
	result := request.Namespace(p.namespace()).Resource("pods").Name(pod).SubResource("proxy").Suffix("plan").
		Param("format", "json").SetHeader("Accept", "application/json").Do(ctx).StatusCode(&status)
	body, _ := result.Raw()
	err, refused := result.Error(), refusal(body)
	switch {
	case err == nil:
		err = errors.Wrap(json.Unmarshal(body, &out), "reading it")
	case status == http.StatusUnprocessableEntity && by != nil && len(refused) > 0:
		return out, mistakes{by.name, refused}
	case len(refused) > 0:
		err = errors.New(strings.Join(refused, "; "))
	default:
		err = p.missing(err, verb)
	}
	return out, errors.WithMessagef(err, "asking pod %s/%s for its plan", p.namespace(), pod)
}

// refusal is what a controller says instead of a plan; nothing if it wasn't asked.
func refusal(body []byte) []string {
	var said struct{ Problems []string }
	// Where it isn't this, the answer is not the leader's.
	_ = json.Unmarshal(body, &said)
	return said.Problems
}

// missing says what keeps the leader from being asked, or its answer from getting here.
func (p *plugin) missing(err error, verb string) error {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return errors.Errorf("no answer within %s: is its node well?", answerWithin)
	case apierrors.IsForbidden(err):
		return errors.Errorf("you lack the right to %s pods/proxy in namespace %s", verb, p.namespace())
	case apierrors.IsNotFound(err):
		return errors.New("it is gone; another controller leads as soon as its Lease has run out")
	case strings.Contains(err.Error(), "error trying to reach service"):
		return errors.WithMessage(err, "the API server can't reach it: a NetworkPolicy or a firewall may stand between them, or its node be down")
	}
	return errors.WithStack(err)
}

// mistakes are those of a policy file, the only error of several lines.
type mistakes struct {
	in    string
	lines []string
}

func (m mistakes) Error() string {
	said := make([]string, len(m.lines))
	for i, l := range m.lines {
		said[i] = line(m.in + ": " + l)
	}
	return strings.Join(said, "\n")
}
