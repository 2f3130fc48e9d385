package authorizer

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	// maxToken is far above the size of a service account's token.
	maxToken = 8 << 10
	// clockError is how wrong the proxy's clock may be without an effect on which tokens are reviewed. A clock that
	// is further off lets no agent begin anything anyway: intents seem over.
	clockError = 24 * time.Hour
)

// bearer returns what a request shows as its token, empty if there is nothing that could be one.
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

// jwt is what a bearer token says of itself. It is no proof of anything; only a review is.
type jwt struct {
	keyID string
	claims
	// text is the token as it came.
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

// audience is one text or several.
type audience []string

func (a *audience) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*a = audience{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(a))
}

// strict has one spelling for each content: no padding, no bits left over.
var strict = base64.RawURLEncoding.Strict()

// readToken reads a token in the one spelling that it has: three parts in base64url, with nothing between them but
// a dot. What could be spelled in two ways would be two tokens, each with a review of its own.
func readToken(text string) (jwt, bool) {
	parts := strings.Split(text, ".")
	// The decoder passes over line breaks.
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

// told refuses what a review could only refuse as well. The issuer is no ground for it: a cluster may have several,
// and whose signature is good says more (keys.go).
func (r *reviewer) told(t jwt) *Refusal {
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
	return refuse(ReasonBadToken, "the token is not valid, or not for audience %q", r.audience)
}

func (r *reviewer) otherAccount(name string) *Refusal {
	return refuse(ReasonAccount, "user %.120q is not the agents' service account %q", name, r.account)
}

// unbound refuses a token that says not which pod it is of, and on which node that is.
func unbound(pod, node bound) *Refusal {
	switch {
	case pod.Name == "" || pod.UID == "":
		return refuse(ReasonUnbound, "the token is not bound to a pod: agents need the projected token of a pod")
	case node.Name == "" || node.UID == "":
		return refuse(ReasonUnbound, "the token names no node: tokens of scheduled pods do so since Kubernetes 1.31")
	}
	return nil
}
