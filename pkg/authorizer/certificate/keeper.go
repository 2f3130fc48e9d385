package certificate

import (
	"context"
	"crypto/tls"
	"sync"
	"time"

	"github.com/pkg/errors"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Config is what NewKeeper needs.
type Config struct {
	Client kubernetes.Interface
	// SecretName and CAName are the Secret and the ConfigMap in Namespace. Both have to exist.
	Namespace, SecretName, CAName string
	// ServerName is the name that the certificate is for.
	ServerName string
	// Life is for certificates that the Keeper makes itself.
	Life Life
	// CertFile and KeyFile are a certificate of the user's own, CertCAFile its CA for the ConfigMap; if that is empty,
	// nothing is published.
	CertFile, KeyFile, CertCAFile string
	Now                           func() time.Time
	Log                           logrus.FieldLogger
	// Expires gets the end of the serving certificate; it may be nil.
	Expires *prometheus.GaugeVec
}

// Keeper keeps a serving certificate that agents can verify.
type Keeper struct {
	c Config

	// last is the Secret's data that was last in use, emptySince when the Secret was first seen without data. Only Run's
	// goroutine uses them.
	last       map[string][]byte
	emptySince time.Time

	mu      sync.Mutex
	current *tls.Certificate
	// reached is when the API server answered last.
	reached time.Time
	problem error
}

// NewKeeper returns a Keeper without a certificate yet.
func NewKeeper(c Config) *Keeper { return &Keeper{c: c} }

const (
	// passMax is the interval of passes; lives of hours and less make it shorter.
	passMax = time.Minute
	passMin = 50 * time.Millisecond
	// retryMin is the pause after a failed pass, doubled up to retryMax.
	retryMin = 250 * time.Millisecond
	retryMax = 15 * time.Second
	// passTime bounds one pass.
	passTime = 20 * time.Second
	// staleAfter is the number of intervals without an answer of the API server after which the Keeper isn't ready.
	staleAfter = 3
	// restoredAfter is the number of intervals in which another replica may restore an empty Secret.
	restoredAfter = 2
)

func (k *Keeper) interval() time.Duration {
	return min(passMax, max(passMin, min(k.c.Life.Serving/30, k.c.Life.CA/60)))
}

// Run makes passes until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	retry := retryMin
	for ctx.Err() == nil {
		pause := k.interval()
		if err := k.pass(ctx); err != nil && ctx.Err() == nil {
			k.failed(err)
			pause, retry = min(pause, retry), min(2*retry, retryMax)
		} else {
			retry = retryMin
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// failed remembers a problem, and logs it once.
func (k *Keeper) failed(err error) {
	if apierrors.IsConflict(err) {
		// Another replica wrote first. The next pass reads that.
		return
	}
	k.mu.Lock()
	known := k.problem != nil && k.problem.Error() == err.Error()
	k.problem = err
	k.mu.Unlock()
	if !known {
		k.c.Log.WithError(err).Warn("Could not check or renew the proxy's certificate; trying again")
	}
}

// pass reads Secret and ConfigMap, takes the next step that is due, publishes the CAs, and then serves the certificate.
// If replicas do so at the same time, one of them writes the Secret, and the others begin again.
func (k *Keeper) pass(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, passTime)
	defer cancel()
	if k.c.CertFile != "" {
		return k.passFiles(ctx)
	}
	// The ConfigMap is read first, so that it is no newer than the Secret.
	config, err := k.published(ctx)
	if err != nil {
		return err
	}
	secrets := k.c.Client.CoreV1().Secrets(k.c.Namespace)
	secret, err := secrets.Get(ctx, k.c.SecretName, metav1.GetOptions{})
	if err != nil {
		return k.readError(err, "Secret", k.c.SecretName)
	}
	restored, err := k.restored(secret.Data, []byte(config.Data[bundleKey]))
	if err != nil {
		return err
	}
	data, changed, err := advance(restored, []byte(config.Data[bundleKey]), k.c.ServerName, k.c.Life, k.c.Now())
	if err != nil {
		return err
	}
	if changed || len(restored) != len(secret.Data) {
		secret.Data = data
		if secret, err = secrets.Update(ctx, secret, metav1.UpdateOptions{}); err != nil {
			return errors.Wrapf(err, "writing Secret %s/%s", k.c.Namespace, k.c.SecretName)
		}
		k.c.Log.Info("Wrote the proxy's certificates")
	}
	if err := k.publish(ctx, config, bundle(secret.Data)); err != nil {
		return err
	}
	if err := k.use(secret.Data[keyServing], secret.Data[keyKey]); err != nil {
		return err
	}
	k.last, k.emptySince = secret.Data, time.Time{}
	return nil
}

// restored returns the Secret's data, or what was last in use if it is empty: agents then keep trusting the same CA
// after the Secret was deleted and created anew. A Keeper that has nothing in use first gives another replica time to
// restore it, if agents trust a CA.
func (k *Keeper) restored(data map[string][]byte, published []byte) (map[string][]byte, error) {
	if len(data) > 0 {
		return data, nil
	}
	if k.last != nil {
		return k.last, nil
	}
	now := k.c.Now()
	if ca := parse(published); ca == nil || !now.Before(ca.NotAfter) {
		return nil, nil
	}
	if k.emptySince.IsZero() {
		k.emptySince = now
	}
	if until := k.emptySince.Add(restoredAfter * k.interval()); now.Before(until) {
		return nil, errors.Errorf("Secret %s/%s is empty while agents trust a CA: another replica has until %s to restore it",
			k.c.Namespace, k.c.SecretName, until.UTC().Format(time.RFC3339))
	}
	return nil, nil
}

// readError returns the error of an object that can't be read. For a deleted one it names consequence and remedy.
func (k *Keeper) readError(err error, kind, name string) error {
	if !apierrors.IsNotFound(err) {
		return errors.Wrapf(err, "reading %s %s/%s", kind, k.c.Namespace, name)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	meanwhile := "agents can't connect without it"
	if k.current != nil {
		meanwhile = "the present certificate is served until " + k.current.Leaf.NotAfter.UTC().Format(time.RFC3339) + " and will be restored"
	}
	return errors.Wrapf(err, "reading %s %s/%s: it was deleted; apply update-operator.yaml again, the proxy may not create it; %s",
		kind, k.c.Namespace, name, meanwhile)
}

// use makes the server use a certificate from now on.
func (k *Keeper) use(cert, key []byte) error {
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return errors.Wrap(err, "reading the serving certificate")
	}
	if err := pair.Leaf.VerifyHostname(k.c.ServerName); err != nil {
		return errors.Wrap(err, "checking the serving certificate")
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.current, k.problem = &pair, nil
	if k.c.Expires != nil {
		k.c.Expires.WithLabelValues("serving").Set(float64(pair.Leaf.NotAfter.Unix()))
	}
	return nil
}

// GetCertificate returns the present certificate, for a tls.Config.
func (k *Keeper) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.current == nil {
		return nil, errors.New("there is no certificate yet")
	}
	return k.current, nil
}

// Ready returns why agents can't be served: there is no certificate, it has expired, or the API server didn't answer
// for a while. Other problems with the certificate's objects are logged, and the present certificate is served until it
// expires.
func (k *Keeper) Ready() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.c.Now()
	switch {
	case k.current == nil && k.problem != nil:
		return k.problem
	case k.current == nil:
		return errors.New("there is no certificate yet")
	case !now.Before(k.current.Leaf.NotAfter):
		return errors.New("the serving certificate has expired")
	case now.Sub(k.reached) > max(staleAfter*k.interval(), passTime):
		if k.problem != nil {
			return errors.WithMessage(k.problem, "the API server was not reached for a while")
		}
		return errors.New("the API server was not reached for a while")
	}
	return nil
}
