package authorizer

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/authorizer/rule"
)

const (
	// maxToken is far above the size of a service account's token, in bytes.
	maxToken = 8 << 10
	// clockError is how wrong the proxy's clock may be without an effect on which tokens are reviewed. With a clock that
	// is further off no agent can begin anything anyway, since intents seem expired.
	clockError = 24 * time.Hour
)

// bearer returns a request's bearer token; empty if there is none, or more than one, or it is too long.
func bearer(r *http.Request) string {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return ""
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") || len(token) > maxToken {
		return ""
	}
	return token
}

// jwt is a bearer token's content before its review. It proves nothing.
type jwt struct {
	keyID string
	claims
	text string
}

type claims struct {
	Subject    string   `json:"sub"`
	Audience   audience `json:"aud"`
	Expires    float64  `json:"exp"`
	Kubernetes struct {
		Node bound `json:"node"`
		Pod  bound `json:"pod"`
	} `json:"kubernetes.io"`
}

type bound struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}

// audience is a list, in JSON also a single string.
type audience []string

func (a *audience) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*a = audience{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(a))
}

// strict accepts one encoding for each content: no padding, no unused bits.
var strict = base64.RawURLEncoding.Strict()

// readToken reads a token in its canonical form: three parts in base64url, separated by dots. Each other form would
// count as another token, with another review.
func readToken(text string) (jwt, bool) {
	parts := strings.Split(text, ".")
	// The decoder ignores line breaks.
	if len(parts) != 3 || strings.ContainsAny(text, "\r\n") {
		return jwt{}, false
	}
	var decoded [3][]byte
	for i, p := range parts {
		var err error
		if decoded[i], err = strict.DecodeString(p); err != nil || len(decoded[i]) == 0 {
			return jwt{}, false
		}
	}
	var head struct {
		KeyID string `json:"kid"`
	}
	t := jwt{text: text}
	if json.Unmarshal(decoded[0], &head) != nil || json.Unmarshal(decoded[1], &t.claims) != nil {
		return jwt{}, false
	}
	t.keyID = head.KeyID
	return t, true
}

// refuseEarly refuses a token by claims that a review would refuse too. It doesn't look at the issuer: a cluster may
// have several, and the signature is a better test (keys.go).
func (r *reviewer) refuseEarly(t jwt) *Refusal {
	switch {
	case !slices.Contains(t.Audience, r.audience):
		return r.notValid()
	case r.now().After(time.Unix(int64(min(t.Expires, 1<<40)), 0).Add(clockError)):
		return r.notValid()
	case t.Subject != r.account:
		return r.otherAccount(t.Subject)
	}
	return unbound(t.Kubernetes.Pod, t.Kubernetes.Node)
}

func (r *reviewer) notValid() *Refusal {
	return rule.Refuse(rule.ReasonBadToken, "the token is not valid, or not for audience %q", r.audience)
}

func (r *reviewer) otherAccount(name string) *Refusal {
	return rule.Refuse(rule.ReasonAccount, "user %.120q is not the agents' service account %q", name, r.account)
}

// unbound refuses a token that doesn't name its pod and the pod's node.
func unbound(pod, node bound) *Refusal {
	switch {
	case pod.Name == "" || pod.UID == "":
		return rule.Refuse(rule.ReasonUnbound, "the token is not bound to a pod: agents need the projected token of a pod")
	case node.Name == "" || node.UID == "":
		return rule.Refuse(rule.ReasonUnbound, "the token names no node: use Kubernetes 1.31 or newer")
	}
	return nil
}
