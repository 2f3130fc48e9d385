package authorizer

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pkg/errors"
	"gotest.tools/v3/assert"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/authorizer/rule"
)

const (
	testAudience = "bottlerocket-update-operator"
	testAccount  = "system:serviceaccount:bottlerocket:update-operator-agent"
)

// goodReview is what the API server says of an agent's token.
func goodReview(i Identity) authenticationv1.TokenReviewStatus {
	return authenticationv1.TokenReviewStatus{Authenticated: true, Audiences: []string{testAudience}, User: authenticationv1.UserInfo{
		Username: testAccount, Extra: map[string]authenticationv1.ExtraValue{
			claimNodeName: {i.NodeName}, claimNodeUID: {i.NodeUID}, claimPodName: {i.PodName}, claimPodUID: {i.PodUID}}}}
}

func TestReviewJudge(t *testing.T) {
	r := newReviewer(nil, testKeys(), testAudience, "bottlerocket", "update-operator-agent", time.Now, NewMetrics(nil))
	for _, tc := range []struct {
		name   string
		change func(s *authenticationv1.TokenReviewStatus)
		want   Reason
		says   string
	}{
		{name: "an agent's", change: func(*authenticationv1.TokenReviewStatus) {}},
		{name: "not authenticated", change: func(s *authenticationv1.TokenReviewStatus) { s.Authenticated = false }, want: rule.ReasonBadToken},
		{name: "another audience", change: func(s *authenticationv1.TokenReviewStatus) { s.Audiences = []string{"vault"} }, want: rule.ReasonBadToken, says: testAudience},
		{name: "no audience", change: func(s *authenticationv1.TokenReviewStatus) { s.Audiences = nil }, want: rule.ReasonBadToken},
		{name: "another account", change: func(s *authenticationv1.TokenReviewStatus) {
			s.User.Username = "system:serviceaccount:bottlerocket:update-operator-controller"
		}, want: rule.ReasonAccount, says: "update-operator-controller"},
		{name: "that account elsewhere", change: func(s *authenticationv1.TokenReviewStatus) {
			s.User.Username = "system:serviceaccount:default:update-operator-agent"
		}, want: rule.ReasonAccount},
		{name: "no pod", change: func(s *authenticationv1.TokenReviewStatus) { delete(s.User.Extra, claimPodUID) }, want: rule.ReasonUnbound, says: "pod"},
		{name: "no node", change: func(s *authenticationv1.TokenReviewStatus) { delete(s.User.Extra, claimNodeName) }, want: rule.ReasonUnbound, says: "1.31"},
		{name: "no node UID", change: func(s *authenticationv1.TokenReviewStatus) { delete(s.User.Extra, claimNodeUID) }, want: rule.ReasonUnbound},
		{name: "two nodes", change: func(s *authenticationv1.TokenReviewStatus) { s.User.Extra[claimNodeName] = []string{"a", "b"} }, want: rule.ReasonUnbound},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := goodReview(agent)
			tc.change(&s)
			v := r.judge(s)
			assert.Equal(t, verdict(v.refusal), orAllowed(tc.want))
			if tc.want == "" {
				assert.Equal(t, v.identity, agent)
			} else {
				assert.Equal(t, v.identity, Identity{})
				assert.Assert(t, strings.Contains(v.refusal.Message, tc.says), v.refusal.Message)
			}
		})
	}
}

// reviewWorld is an API server that reviews tokens as told, by the words that they were made with.
type reviewWorld struct {
	*reviewer
	asked atomic.Int32
	now   atomic.Pointer[time.Time]
	says  atomic.Pointer[func(token string) (authenticationv1.TokenReviewStatus, error)]
}

func newReviewWorld() *reviewWorld {
	w := &reviewWorld{}
	w.set(func(string) (authenticationv1.TokenReviewStatus, error) { return goodReview(agent), nil })
	w.at(noon)
	client := fake.NewClientset()
	client.PrependReactor("create", "tokenreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		w.asked.Add(1)
		created, ok := action.(clienttesting.CreateAction)
		if !ok {
			return false, nil, nil
		}
		tr, ok := created.GetObject().(*authenticationv1.TokenReview)
		if !ok {
			return false, nil, nil
		}
		s, err := (*w.says.Load())(wordOf(tr.Spec.Token))
		tr = tr.DeepCopy()
		tr.Status = s
		return true, tr, err
	})
	w.reviewer = newReviewer(client, testKeys(), testAudience, "bottlerocket", "update-operator-agent", func() time.Time { return *w.now.Load() }, NewMetrics(nil))
	return w
}

func (w *reviewWorld) set(f func(string) (authenticationv1.TokenReviewStatus, error)) {
	w.says.Store(&f)
}
func (w *reviewWorld) at(t time.Time) { w.now.Store(&t) }

func TestReviewsAreRemembered(t *testing.T) {
	w := newReviewWorld()
	ask := func(wantReason Reason, wantErr bool, wantAsked int32) {
		t.Helper()
		v, err := w.identify(context.Background(), madeUp("token"), "10.0.0.1")
		assert.Equal(t, err != nil, wantErr, "%v", err)
		if !wantErr {
			assert.Equal(t, verdict(v.refusal), orAllowed(wantReason))
		}
		assert.Equal(t, w.asked.Load(), wantAsked)
	}
	ask("", false, 1)
	ask("", false, 1)
	w.at(noon.Add(reviewFor - time.Nanosecond))
	ask("", false, 1)
	// An outage isn't remembered, and a review that doesn't stand any more doesn't stand in for an answer.
	w.at(noon.Add(reviewFor))
	w.set(func(string) (authenticationv1.TokenReviewStatus, error) {
		return authenticationv1.TokenReviewStatus{}, errors.New("down")
	})
	ask("", true, 2)
	ask("", true, 3)
	w.set(func(string) (authenticationv1.TokenReviewStatus, error) {
		return authenticationv1.TokenReviewStatus{}, nil
	})
	ask(rule.ReasonBadToken, false, 4)
	ask(rule.ReasonBadToken, false, 4)
	// A clock that goes back makes nothing stand longer.
	w.at(noon.Add(-time.Hour))
	ask(rule.ReasonBadToken, false, 5)
}

// A client whose tokens are all bad is refused before its tokens are reviewed, and neither known agents nor other
// addresses notice.
func TestBadTokensAreHeldUp(t *testing.T) {
	w := newReviewWorld()
	w.set(func(token string) (authenticationv1.TokenReviewStatus, error) {
		if strings.HasPrefix(token, "good") {
			return goodReview(agent), nil
		}
		return authenticationv1.TokenReviewStatus{}, nil
	})
	identify := func(word, address string) Reason {
		v, err := w.identify(context.Background(), madeUp(word), address)
		assert.NilError(t, err)
		if v.refusal == nil {
			return ""
		}
		return v.refusal.Reason
	}
	for i := range 100 {
		assert.Equal(t, identify(fmt.Sprintf("good-%d", i), "10.0.0.1"), Reason(""), "good tokens cost nothing")
	}
	held := 0
	for i := range 100 {
		if identify(fmt.Sprintf("bad-%d", i), "10.0.0.1") == rule.ReasonTooMany {
			held++
		}
	}
	assert.Assert(t, held > 50, "%d", held)
	assert.Assert(t, w.asked.Load() < 150, "%d reviews", w.asked.Load())
	// Neither an agent that is known there nor another address feels it.
	w.at(noon.Add(time.Minute))
	assert.Equal(t, identify("good-1", "10.0.0.1"), Reason(""))
	assert.Equal(t, identify("good-new", "10.0.0.2"), Reason(""))
}

func TestLimitPerAgent(t *testing.T) {
	limits := newLRUMap[string](newLimit)
	var leaves []func()
	for range inFlight {
		leave, refusal := limits.get("a").enter()
		assert.Assert(t, refusal == nil)
		leaves = append(leaves, leave)
	}
	_, refusal := limits.get("a").enter()
	assert.Equal(t, verdict(refusal), string(rule.ReasonTooMany))
	_, refusal = limits.get("b").enter()
	assert.Assert(t, refusal == nil, "another agent doesn't feel it")
	leaves[0]()
	_, refusal = limits.get("a").enter()
	assert.Assert(t, refusal == nil)
	refused := 0
	for range 2 * requestBurst {
		if leave, refusal := limits.get("c").enter(); refusal != nil {
			refused++
		} else {
			leave()
		}
	}
	assert.Assert(t, refused >= requestBurst/2, "%d", refused)
}
