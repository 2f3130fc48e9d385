package authorizer

import (
	"context"
	"crypto/sha256"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/pkg/errors"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Claims of a bound token, Kubernetes 1.31 or newer (KEP 4193).
const (
	claimNodeName = "authentication.kubernetes.io/node-name"
	claimNodeUID  = "authentication.kubernetes.io/node-uid"
	claimPodName  = "authentication.kubernetes.io/pod-name"
	claimPodUID   = "authentication.kubernetes.io/pod-uid"
)

const (
	// reviewFor is how long a review stands: a deleted pod's token works that much longer at most.
	reviewFor = 10 * time.Second
	// maxToken is far above the size of a service account's token.
	maxToken = 16 << 10
)

// Identity is an agent, as its token proves it.
type Identity struct {
	NodeName, NodeUID string
	PodName, PodUID   string
}

// reviewer turns tokens into identities.
type reviewer struct {
	client   kubernetes.Interface
	audience string
	// account is the user name of the agents' service account.
	account string
	now     func() time.Time
	// reviews are by the tokens' hashes: the token itself is kept nowhere.
	reviews *kept[[sha256.Size]byte, *remembered]
	gates   *kept[string, *gate]
}

// review is what the API server says of a token. One of its two is set.
type review struct {
	identity Identity
	refusal  *Refusal
}

func newReviewer(client kubernetes.Interface, audience, namespace, account string, now func() time.Time) *reviewer {
	return &reviewer{client: client, audience: audience, account: "system:serviceaccount:" + namespace + ":" + account, now: now,
		reviews: newKept[[sha256.Size]byte](newRemembered), gates: newKept[string](newGate)}
}

// bearer returns the token of a request, empty if it has none that could be one.
func bearer(r *http.Request) string {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return ""
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "Bearer") || len(token) > maxToken {
		return ""
	}
	return token
}

// identify returns whose token it is. An error of the API server is never remembered. A token that was
// never good goes through the gate of the address it came from.
func (r *reviewer) identify(ctx context.Context, token, address string) (review, error) {
	if token == "" {
		return review{refusal: refuse(ReasonNoToken, "a bearer token is needed")}, nil
	}
	known := r.reviews.of(sha256.Sum256([]byte(token)))
	last, good := known.get(r.now())
	if last != nil {
		return *last, nil
	}
	if good {
		return r.ask(ctx, token)
	}
	g := r.gates.of(address)
	leave, refusal := g.enter(ctx)
	if refusal != nil {
		return review{refusal: refusal}, nil
	}
	defer leave()
	// Another request with the same token may have been here meanwhile.
	if last, _ := known.get(r.now()); last != nil {
		return *last, nil
	}
	v, err := r.ask(ctx, token)
	if err == nil && v.refusal != nil {
		g.failed()
	}
	return v, err
}

// ask reviews a token now, and remembers the answer for a while.
func (r *reviewer) ask(ctx context.Context, token string) (review, error) {
	at := r.now()
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	tr, err := r.client.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{r.audience}}}, metav1.CreateOptions{})
	if err != nil {
		return review{}, errors.Wrap(err, "reviewing a token")
	}
	v := r.judge(tr.Status)
	r.reviews.of(sha256.Sum256([]byte(token))).put(v, at)
	return v, nil
}

// judge reads a review: first who, then where.
func (r *reviewer) judge(s authenticationv1.TokenReviewStatus) review {
	no := func(reason Reason, format string, args ...any) review {
		return review{refusal: refuse(reason, format, args...)}
	}
	if !s.Authenticated || !slices.Contains(s.Audiences, r.audience) {
		return no(ReasonBadToken, "the token is not valid, or not for audience %q", r.audience)
	}
	if s.User.Username != r.account {
		return no(ReasonAccount, "user %.120q is not the agents' service account %q", s.User.Username, r.account)
	}
	claim := func(name string) string {
		if v := s.User.Extra[name]; len(v) == 1 {
			return v[0]
		}
		return ""
	}
	i := Identity{NodeName: claim(claimNodeName), NodeUID: claim(claimNodeUID), PodName: claim(claimPodName), PodUID: claim(claimPodUID)}
	switch {
	case i.PodName == "" || i.PodUID == "":
		return no(ReasonUnbound, "the token is not bound to a pod: agents need the projected token of a pod")
	case i.NodeName == "" || i.NodeUID == "":
		return no(ReasonUnbound, "the token names no node: tokens of scheduled pods do so since Kubernetes 1.31")
	}
	return review{identity: i}
}
