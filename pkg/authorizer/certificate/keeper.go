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

// Config is what a Keeper is made from.
type Config struct {
	Client kubernetes.Interface
	// SecretName and CAName are the Secret and the ConfigMap in Namespace. Both have to exist.
	Namespace, SecretName, CAName string
	// ServerName is the name that the certificate is for.
	ServerName string
	// Life is for what the Keeper makes itself.
	Life Life
	// CertFile and KeyFile are a certificate of the user's own, CertCAFile what agents are to trust then;
	// empty: agents are told nothing.
	CertFile, KeyFile, CertCAFile string
	Now                           func() time.Time
	Log                           logrus.FieldLogger
	// Expires gets the end of the serving certificate; nil is nobody.
	Expires *prometheus.GaugeVec
}

// Keeper keeps a serving certificate in use that agents can verify.
type Keeper struct {
	c Config

	// last is the Secret's data as it was last in use, emptySince when the Secret was first seen without any. Run's
	// goroutine alone uses them.
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
	// The state is looked at every lookMax, more often where lives are short.
	lookMax = time.Minute
	lookMin = 50 * time.Millisecond
	// After a failure it is looked at again sooner.
	retryMin = 250 * time.Millisecond
	retryMax = 15 * time.Second
	// lookTime bounds one look.
	lookTime = 20 * time.Second
	// staleAfter is how many looks in a row the API server may leave without an answer before the Keeper isn't ready
	// any more.
	staleAfter = 3
	// restoredAfter is how many looks a Keeper gives another one to put back into an empty Secret what it has in use.
	restoredAfter = 2
)

func (k *Keeper) interval() time.Duration {
	return min(lookMax, max(lookMin, min(k.c.Life.Serving/30, k.c.Life.CA/60)))
}

// Run looks at the state, and moves it on where that is due, until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	retry := retryMin
	for ctx.Err() == nil {
		pause := k.interval()
		if err := k.look(ctx); err != nil && ctx.Err() == nil {
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
		// Another replica wrote first: look again.
		return
	}
	k.mu.Lock()
	known := k.problem != nil && k.problem.Error() == err.Error()
	k.problem = err
	k.mu.Unlock()
	if !known {
		k.c.Log.WithError(err).Warn("The proxy's certificate could not be looked after; it is tried again")
	}
}

// look reads what stands there, moves it on, and takes it into use once agents are told. Replicas that do
// so at the same time meet in the compare-and-swap: one writes, the other looks again.
func (k *Keeper) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	if k.c.CertFile != "" {
		return k.lookAtFiles(ctx)
	}
	// The ConfigMap first: what it says is then no newer than the Secret.
	config, err := k.published(ctx)
	if err != nil {
		return err
	}
	secrets := k.c.Client.CoreV1().Secrets(k.c.Namespace)
	secret, err := secrets.Get(ctx, k.c.SecretName, metav1.GetOptions{})
	if err != nil {
		return k.lost(err, "Secret", k.c.SecretName)
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

// restored returns what belongs into the Secret: what is there, or in place of nothing what was last in use. So a Secret
// that was deleted and made again, empty, costs agents no CA that they trust. A Keeper that has nothing in use gives
// another one time to do that, if agents trust something.
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
		return nil, errors.Errorf("Secret %s/%s is empty while agents trust a CA: a proxy that serves by it has until %s to put it back",
			k.c.Namespace, k.c.SecretName, until.UTC().Format(time.RFC3339))
	}
	return nil, nil
}

// lost says what an object that can't be read means.
func (k *Keeper) lost(err error, kind, name string) error {
	if !apierrors.IsNotFound(err) {
		return errors.Wrapf(err, "reading %s %s/%s", kind, k.c.Namespace, name)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	until := "nothing is served without it"
	if k.current != nil {
		until = "what is in use is served until " + k.current.Leaf.NotAfter.UTC().Format(time.RFC3339) + " and goes back there"
	}
	return errors.Wrapf(err, "reading %s %s/%s: it was deleted; apply update-operator.yaml again, for the proxy may not create it; %s",
		kind, k.c.Namespace, name, until)
}

// use serves a certificate from now on.
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

// GetCertificate is for a tls.Config: what it returns changes without a restart.
func (k *Keeper) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.current == nil {
		return nil, errors.New("there is no certificate yet")
	}
	return k.current, nil
}

// Ready returns why agents can't be served: there is no certificate, it has ended, or the API server didn't answer for
// a while. Other trouble with the certificate's objects is logged, and what is in use is served until it ends.
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
		return errors.New("the serving certificate has ended")
	case now.Sub(k.reached) > max(staleAfter*k.interval(), lookTime):
		if k.problem != nil {
			return errors.WithMessage(k.problem, "the API server was not reached for a while")
		}
		return errors.New("the API server was not reached for a while")
	}
	return nil
}
