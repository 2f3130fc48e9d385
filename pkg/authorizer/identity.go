package authorizer

import (
	"context"
	"crypto/sha256"
	"slices"
	"time"

	"github.com/pkg/errors"
	"golang.org/x/sync/singleflight"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/authorizer/rule"
)

// Claims of a bound token, Kubernetes 1.31 or newer (KEP 4193).
const (
	claimNodeName = "authentication.kubernetes.io/node-name"
	claimNodeUID  = "authentication.kubernetes.io/node-uid"
	claimPodName  = "authentication.kubernetes.io/pod-name"
	claimPodUID   = "authentication.kubernetes.io/pod-uid"
)

// reviewFor is how long a review is valid. A deleted pod's token works at most that much longer.
const reviewFor = 10 * time.Second

// Identity is an agent's node and pod, as its token proves them.
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
	keys    *keys
	// reviews are by the tokens' hashes: the tokens themselves are not kept.
	reviews *reviews
	// gate limits the reviews of tokens that may be made up, signed those of the others.
	gate   *gate
	signed chan struct{}
	// pods are allowances for reviews of the others, by the UIDs of the tokens' pods.
	pods    *lruMap[string, *allowance]
	metrics *Metrics
	// flights are the reviews under way, by the tokens' hashes.
	flights singleflight.Group
}

// review is the API server's answer about a token: an identity or a refusal.
type review struct {
	identity Identity
	refusal  *Refusal
}

func newReviewer(client kubernetes.Interface, k *keys, audience, namespace, account string, now func() time.Time, m *Metrics) *reviewer {
	return &reviewer{client: client, metrics: m, audience: audience, account: "system:serviceaccount:" + namespace + ":" + account, now: now,
		keys: k, reviews: newReviews(), gate: newGate(now), signed: make(chan struct{}, signedAtOnce),
		pods: newLRUMap[string](func() *allowance { return newAllowance(podReviewsPerSecond, podReviewBurst, now) })}
}

// identify returns the review of a token, remembered or new. Errors of the API server are never remembered.
func (r *reviewer) identify(ctx context.Context, text, address string) (review, error) {
	if text == "" {
		return review{refusal: rule.Refuse(rule.ReasonNoToken, "a bearer token is needed")}, nil
	}
	last, good := r.reviews.get(sha256.Sum256([]byte(text)), r.now())
	if last != nil {
		return *last, nil
	}
	t, ok := readToken(text)
	if !ok {
		return review{refusal: r.notValid()}, nil
	}
	if refusal := r.refuseEarly(t); refusal != nil {
		return review{refusal: refusal}, nil
	}
	if good || r.keys.signed(t) {
		return r.ask(ctx, text, r.unlessKnown(r.paidByPod(t.Kubernetes.Pod.UID)))
	}
	return r.ask(ctx, text, r.unlessKnown(r.paidByAddress(address)))
}

// reviewFunc reviews a token.
type reviewFunc func(ctx context.Context, text string, hash [sha256.Size]byte) (review, error)

// ask reviews a token, once for all concurrent requests with it, and remembers the answer. A review goes on after its
// clients disconnect, so that they can't avoid its cost.
func (r *reviewer) ask(ctx context.Context, text string, do reviewFunc) (review, error) {
	hash := sha256.Sum256([]byte(text))
	answer := r.flights.DoChan(string(hash[:]), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTime)
		defer cancel()
		return do(ctx, text, hash)
	})
	select {
	case <-ctx.Done():
		return review{}, errors.Wrap(ctx.Err(), "waiting for a review of a token")
	case a := <-answer:
		v, _ := a.Val.(review)
		return v, a.Err
	}
}

// unlessKnown uses a remembered review instead, if one ended since identify looked for it.
func (r *reviewer) unlessKnown(do reviewFunc) reviewFunc {
	return func(ctx context.Context, text string, hash [sha256.Size]byte) (review, error) {
		if last, _ := r.reviews.get(hash, r.now()); last != nil {
			return *last, nil
		}
		return do(ctx, text, hash)
	}
}

// paidByAddress reviews a token that may be made up, and counts it for the address.
func (r *reviewer) paidByAddress(address string) reviewFunc {
	return func(ctx context.Context, text string, hash [sha256.Size]byte) (review, error) {
		leave, refusal := r.gate.enter(ctx, address)
		if refusal != nil {
			return review{refusal: refusal}, nil
		}
		v, err := r.review(ctx, text, hash)
		leave(err == nil && v.refusal == nil)
		return v, err
	}
}

// paidByPod reviews a token that the API server signed, and counts it for the pod: the claims are the API server's,
// though the token may have been revoked. Errors don't count, so that an outage costs an agent nothing.
func (r *reviewer) paidByPod(uid string) reviewFunc {
	return func(ctx context.Context, text string, hash [sha256.Size]byte) (review, error) {
		own := r.pods.get(uid)
		if !own.take() {
			return review{refusal: rule.Refuse(rule.ReasonTooMany, "this pod shows too many tokens: try again later")}, nil
		}
		v, err := r.signedReview(ctx, text, hash)
		if err != nil {
			own.restore()
		}
		return v, err
	}
}

func (r *reviewer) signedReview(ctx context.Context, text string, hash [sha256.Size]byte) (review, error) {
	select {
	case r.signed <- struct{}{}:
	case <-ctx.Done():
		return review{}, errors.Wrap(ctx.Err(), "waiting for the reviews of other tokens")
	}
	defer func() { <-r.signed }()
	return r.review(ctx, text, hash)
}

func (r *reviewer) review(ctx context.Context, text string, hash [sha256.Size]byte) (review, error) {
	at := r.now()
	tr, err := r.client.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: text, Audiences: []string{r.audience}}}, metav1.CreateOptions{})
	if err != nil {
		r.metrics.reviewed(review{}, err)
		return review{}, errors.Wrap(err, "reviewing a token")
	}
	v := r.judge(tr.Status)
	r.metrics.reviewed(v, nil)
	r.reviews.put(hash, v, at)
	return v, nil
}

// judge turns the status of a TokenReview into a review.
func (r *reviewer) judge(s authenticationv1.TokenReviewStatus) review {
	if !s.Authenticated || !slices.Contains(s.Audiences, r.audience) {
		return review{refusal: r.notValid()}
	}
	if s.User.Username != r.account {
		return review{refusal: r.otherAccount(s.User.Username)}
	}
	claim := func(name string) string {
		if v := s.User.Extra[name]; len(v) == 1 {
			return v[0]
		}
		return ""
	}
	i := Identity{NodeName: claim(claimNodeName), NodeUID: claim(claimNodeUID), PodName: claim(claimPodName), PodUID: claim(claimPodUID)}
	if refusal := unbound(bound{i.PodName, i.PodUID}, bound{i.NodeName, i.NodeUID}); refusal != nil {
		return review{refusal: refusal}
	}
	return review{identity: i}
}
