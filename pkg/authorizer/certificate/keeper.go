package certificate

import (
	"context"
	"crypto/tls"
	"maps"
	"os"
	"sync"
	"time"

	"github.com/pkg/errors"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// bundleKey is where agents find the CA in the ConfigMap.
const bundleKey = "ca.crt"

// Config is what a Keeper is made from.
type Config struct {
	Client                        kubernetes.Interface
	Namespace                     string
	SecretName, CAName            string
	ServerName                    string
	Life                          Life
	CertFile, KeyFile, CertCAFile string
	Now                           func() time.Time
	Log                           logrus.FieldLogger
	// Expires gets the end of the serving certificate; nil is nobody.
	Expires *prometheus.GaugeVec
}

// Keeper keeps a serving certificate in use that agents can verify.
type Keeper struct {
	c Config

	mu      sync.Mutex
	current *tls.Certificate
	looked  time.Time
	problem error
}

// NewKeeper returns a Keeper without a certificate yet.
func NewKeeper(c Config) *Keeper { return &Keeper{c: c} }

const (
	lookMax    = time.Minute
	lookMin    = 50 * time.Millisecond
	retryMin   = 250 * time.Millisecond
	retryMax   = 15 * time.Second
	lookTime   = 20 * time.Second
	staleAfter = 5
)

// interval is how often the state is looked at: once a minute, more often where lives are short.
func (k *Keeper) interval() time.Duration {
	return min(lookMax, max(lookMin, k.c.Life.Serving/30))
}

// Run looks at the state, and moves it on where that is due, until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	retry := retryMin
	for {
		pause := k.interval()
		if err := k.look(ctx); err != nil && ctx.Err() == nil {
			k.failed(err)
			pause, retry = retry, min(2*retry, retryMax)
		} else {
			retry = retryMin
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// failed remembers a problem, and logs it once.
func (k *Keeper) failed(err error) {
	if apierrors.IsConflict(errors.Cause(err)) {
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

// look reads what stands there, moves it on, and takes it into use. Replicas that do so at the same
// time meet in the compare-and-swap: one writes, the other looks again.
func (k *Keeper) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	if k.c.CertFile != "" {
		return k.lookAtFiles(ctx)
	}
	config, err := k.c.Client.CoreV1().ConfigMaps(k.c.Namespace).Get(ctx, k.c.CAName, metav1.GetOptions{})
	if err != nil {
		return errors.Wrapf(err, "reading ConfigMap %s/%s (update-operator.yaml has it)", k.c.Namespace, k.c.CAName)
	}
	secret, err := k.c.Client.CoreV1().Secrets(k.c.Namespace).Get(ctx, k.c.SecretName, metav1.GetOptions{})
	if err != nil {
		return errors.Wrapf(err, "reading Secret %s/%s (update-operator.yaml has it)", k.c.Namespace, k.c.SecretName)
	}
	data, changed, err := advance(secret.Data, []byte(config.Data[bundleKey]), k.c.ServerName, k.c.Life, k.c.Now())
	if err != nil {
		return err
	}
	if changed {
		secret.Data = data
		if secret, err = k.c.Client.CoreV1().Secrets(k.c.Namespace).Update(ctx, secret, metav1.UpdateOptions{}); err != nil {
			return errors.Wrapf(err, "writing Secret %s/%s", k.c.Namespace, k.c.SecretName)
		}
		k.c.Log.Info("Renewed the proxy's certificates")
	}
	if err := k.publish(ctx, config, bundle(secret.Data)); err != nil {
		return err
	}
	return k.use(secret.Data[keyServing], secret.Data[keyKey])
}

// lookAtFiles serves a certificate of the user's own.
func (k *Keeper) lookAtFiles(ctx context.Context) error {
	read := func(path string) ([]byte, error) {
		b, err := os.ReadFile(path)
		return b, errors.Wrapf(err, "reading %q", path)
	}
	cert, err := read(k.c.CertFile)
	if err != nil {
		return err
	}
	key, err := read(k.c.KeyFile)
	if err != nil {
		return err
	}
	ca, err := read(k.c.CertCAFile)
	if err != nil {
		return err
	}
	config, err := k.c.Client.CoreV1().ConfigMaps(k.c.Namespace).Get(ctx, k.c.CAName, metav1.GetOptions{})
	if err != nil {
		return errors.Wrapf(err, "reading ConfigMap %s/%s", k.c.Namespace, k.c.CAName)
	}
	if err := k.publish(ctx, config, ca); err != nil {
		return err
	}
	return k.use(cert, key)
}

// publish tells agents whom to trust.
func (k *Keeper) publish(ctx context.Context, config *corev1.ConfigMap, bundle []byte) error {
	if config.Data[bundleKey] == string(bundle) {
		return nil
	}
	config = config.DeepCopy()
	config.Data = maps.Clone(config.Data)
	if config.Data == nil {
		config.Data = map[string]string{}
	}
	config.Data[bundleKey] = string(bundle)
	_, err := k.c.Client.CoreV1().ConfigMaps(k.c.Namespace).Update(ctx, config, metav1.UpdateOptions{})
	return errors.Wrapf(err, "writing ConfigMap %s/%s", k.c.Namespace, k.c.CAName)
}

func (k *Keeper) use(cert, key []byte) error {
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return errors.Wrap(err, "reading the serving certificate")
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.current, k.looked, k.problem = &pair, k.c.Now(), nil
	if c := parse(cert); c != nil && k.c.Expires != nil {
		k.c.Expires.WithLabelValues("serving").Set(float64(c.NotAfter.Unix()))
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

// Ready tells if there is a certificate, and if the API server was reached lately to look after it.
func (k *Keeper) Ready() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.current == nil && k.problem != nil:
		return k.problem
	case k.current == nil:
		return errors.New("there is no certificate yet")
	case k.c.Now().Sub(k.looked) > max(staleAfter*k.interval(), lookTime):
		return errors.New("the API server has not been reached for a while")
	}
	return nil
}
