package plugin

import (
	"context"
	"fmt"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// word is a reason with its author and its time. It is written as one text, where a reason stands.
type word struct {
	reason, by string
	at         time.Time
}

// say returns a reason with the name that the API server has for the user. It is given also where that can't be found
// out.
func (p *plugin) say(ctx context.Context, client kubernetes.Interface, reason string) word {
	w := word{reason: strings.TrimSpace(reason), at: p.now()}
	r, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		warn(p.ErrOut, []string{fmt.Sprintf("it is written without a name, since the API server doesn't say who you are: %v", err)})
		return w
	}
	w.by = r.Status.UserInfo.Username
	return w
}

// begins returns the text up to the time.
func (w word) begins() string {
	if w.by == "" {
		return w.reason + " (at "
	}
	return w.reason + " (by " + w.by + " at "
}

func (w word) String() string { return w.begins() + moment(w.at) + ")" }

// repeats reports whether a text is that word already, of whatever time: it has been so since the first.
func (w word) repeats(text string) bool {
	rest, is := strings.CutPrefix(text, w.begins())
	return is && strings.HasSuffix(rest, ")")
}
