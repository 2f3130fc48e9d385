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
	"k8s.io/apimachinery/pkg/util/cache"
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
	// reviewsKept bounds the memory that strangers' tokens can take.
	reviewsKept = 8192
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
	reviews *cache.LRUExpireCache
}

type review struct {
	identity Identity
	refusal  *Refusal
}

func newReviewer(client kubernetes.Interface, audience, namespace, account string) *reviewer {
	return &reviewer{client: client, audience: audience, account: "system:serviceaccount:" + namespace + ":" + account,
		reviews: cache.NewLRUExpireCache(reviewsKept)}
}

// identify returns who sends the request. An error of the API server is never remembered.
func (r *reviewer) identify(req *http.Request) (Identity, *Refusal, error) {
	scheme, token, _ := strings.Cut(req.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" || len(token) > maxToken {
		return Identity{}, refuse(ReasonNoToken, "a bearer token is needed"), nil
	}
	// The token itself is kept nowhere.
	key := sha256.Sum256([]byte(token))
	if known, ok := r.reviews.Get(key); ok {
		if v, is := known.(review); is {
			return v.identity, v.refusal, nil
		}
	}
	v, err := r.review(req.Context(), token)
	if err != nil {
		return Identity{}, nil, err
	}
	r.reviews.Add(key, v, reviewFor)
	return v.identity, v.refusal, nil
}

func (r *reviewer) review(ctx context.Context, token string) (review, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	tr, err := r.client.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{r.audience}}}, metav1.CreateOptions{})
	if err != nil {
		return review{}, errors.Wrap(err, "reviewing a token")
	}
	return r.judge(tr.Status), nil
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
		return no(ReasonAccount, "user %q is not the agents' service account %q", s.User.Username, r.account)
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
		return no(ReasonUnbound, "the token is not bound to a pod: agents need a projected token")
	case i.NodeName == "" || i.NodeUID == "":
		return no(ReasonUnbound, "the token names no node: tokens do so since Kubernetes 1.31, for pods that are scheduled")
	}
	return review{identity: i}
}
