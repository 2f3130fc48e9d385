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
)

// Claims of a bound token, Kubernetes 1.31 or newer (KEP 4193).
const (
	claimNodeName = "authentication.kubernetes.io/node-name"
	claimNodeUID  = "authentication.kubernetes.io/node-uid"
	claimPodName  = "authentication.kubernetes.io/pod-name"
	claimPodUID   = "authentication.kubernetes.io/pod-uid"
)

// reviewFor is how long a review stands: a deleted pod's token works that much longer at most.
const reviewFor = 10 * time.Second

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
	keys    *keys
	// reviews are by the tokens' hashes: the token itself is kept nowhere.
	reviews *reviews
	// gate is for tokens that anybody could have made up, signed bounds the reviews of the others.
	gate   *gate
	signed chan struct{}
	// pods are allowances for reviews of the others, by the UIDs of the tokens' pods.
	pods *kept[string, *allowance]
	// flights are the reviews under way, by the tokens' hashes.
	flights singleflight.Group
}

// review is what the API server says of a token. One of its two is set.
type review struct {
	identity Identity
	refusal  *Refusal
}

func newReviewer(client kubernetes.Interface, k *keys, audience, namespace, account string, now func() time.Time) *reviewer {
	return &reviewer{client: client, audience: audience, account: "system:serviceaccount:" + namespace + ":" + account, now: now,
		keys: k, reviews: newReviews(), gate: newGate(now), signed: make(chan struct{}, signedAtOnce),
		pods: newKept[string](func() *allowance { return newAllowance(podReviewsPerSecond, podReviewBurst, now) })}
}

// identify returns whose token it is. An error of the API server is never remembered.
func (r *reviewer) identify(ctx context.Context, text, address string) (review, error) {
	if text == "" {
		return review{refusal: refuse(ReasonNoToken, "a bearer token is needed")}, nil
	}
	last, good := r.reviews.get(sha256.Sum256([]byte(text)), r.now())
	if last != nil {
		return *last, nil
	}
	t, ok := readToken(text)
	if !ok {
		return review{refusal: r.notValid()}, nil
	}
	if refusal := r.told(t); refusal != nil {
		return review{refusal: refusal}, nil
	}
	if good || r.keys.signed(t) {
		return r.ask(ctx, text, r.unlessKnown(r.paidByPod(t.Kubernetes.Pod.UID)))
	}
	return r.ask(ctx, text, r.unlessKnown(r.paidByAddress(address)))
}

// reviewing is a way to have a token reviewed.
type reviewing func(ctx context.Context, text string, hash [sha256.Size]byte) (review, error)

// ask reviews a token now, once for all that ask for it meanwhile, and remembers the answer for a while. A review that
// was begun goes on without those that asked for it: that they go away spares nothing.
func (r *reviewer) ask(ctx context.Context, text string, do reviewing) (review, error) {
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

// unlessKnown takes the review that ended between the look at what is known and the beginning of this one.
func (r *reviewer) unlessKnown(do reviewing) reviewing {
	return func(ctx context.Context, text string, hash [sha256.Size]byte) (review, error) {
		if last, _ := r.reviews.get(hash, r.now()); last != nil {
			return *last, nil
		}
		return do(ctx, text, hash)
	}
}

// paidByAddress is for a token that anybody could have made up.
func (r *reviewer) paidByAddress(address string) reviewing {
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

// paidByPod is for a token that the API server made: its claims can be trusted to name the pod, though it may not be good
// any more. An error is given back, so that an outage costs an agent nothing.
func (r *reviewer) paidByPod(uid string) reviewing {
	return func(ctx context.Context, text string, hash [sha256.Size]byte) (review, error) {
		own := r.pods.of(uid)
		if !own.take() {
			return review{refusal: refuse(ReasonTooMany, "this pod shows too many tokens")}, nil
		}
		v, err := r.signedReview(ctx, text, hash)
		if err != nil {
			own.giveBack()
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
		return review{}, errors.Wrap(err, "reviewing a token")
	}
	v := r.judge(tr.Status)
	r.reviews.put(hash, v, at)
	return v, nil
}

// judge reads a review: first who, then where.
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
