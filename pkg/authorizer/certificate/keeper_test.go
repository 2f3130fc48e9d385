package certificate

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/sirupsen/logrus/hooks/test"
	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

const (
	namespace  = "bottlerocket"
	secretName = "update-operator-proxy-tls"
	caName     = "update-operator-proxy-ca"
)

func shipped() []runtime.Object {
	return []runtime.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: secretName}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: caName}},
	}
}

func keeperOf(client *fake.Clientset, now *time.Time) (*Keeper, *test.Hook) {
	log, hook := test.NewNullLogger()
	log.SetLevel(logrus.DebugLevel)
	return NewKeeper(Config{Client: client, Namespace: namespace, SecretName: secretName, CAName: caName, ServerName: serverName,
		Life: life, Now: func() time.Time { return *now }, Log: log}), hook
}

func TestKeeperMakesAndPublishes(t *testing.T) {
	ctx, now := context.Background(), start
	client := fake.NewClientset(shipped()...)
	a, _ := keeperOf(client, &now)
	_, err := a.GetCertificate(nil)
	assert.ErrorContains(t, err, "no certificate yet")
	assert.ErrorContains(t, a.Ready(), "no certificate yet")
	assert.NilError(t, a.pass(ctx))
	assert.NilError(t, a.Ready())
	b, _ := keeperOf(client, &now)
	assert.NilError(t, b.pass(ctx))
	certA, err := a.GetCertificate(nil)
	assert.NilError(t, err)
	certB, err := b.GetCertificate(nil)
	assert.NilError(t, err)
	assert.DeepEqual(t, certA.Certificate, certB.Certificate)

	config, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, caName, metav1.GetOptions{})
	assert.NilError(t, err)
	secret, err := client.CoreV1().Secrets(namespace).Get(ctx, secretName, metav1.GetOptions{})
	assert.NilError(t, err)
	assert.NilError(t, trusted(t, []byte(config.Data[bundleKey]), secret.Data[keyServing], now))

	// At rest nothing is written, and nothing but get and update is ever needed.
	client.ClearActions()
	assert.NilError(t, a.pass(ctx))
	for _, action := range client.Actions() {
		assert.Equal(t, action.GetVerb(), "get")
	}
	// What a user took out of the ConfigMap comes back; what else is in it stays.
	config.Data = map[string]string{"note": "mine"}
	_, err = client.CoreV1().ConfigMaps(namespace).Update(ctx, config, metav1.UpdateOptions{})
	assert.NilError(t, err)
	assert.NilError(t, a.pass(ctx))
	config, err = client.CoreV1().ConfigMaps(namespace).Get(ctx, caName, metav1.GetOptions{})
	assert.NilError(t, err)
	assert.Equal(t, config.Data["note"], "mine")
	assert.Assert(t, config.Data[bundleKey] != "")
	now = now.Add(life.Serving)
	assert.ErrorContains(t, a.Ready(), "has expired")
	now = start.Add(10 * time.Minute)
	assert.ErrorContains(t, a.Ready(), "not reached")
}

func TestNothingIsServedBeforeItIsPublished(t *testing.T) {
	ctx, now := context.Background(), start
	client := fake.NewClientset(shipped()...)
	conflicts := 2
	client.PrependReactor("update", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		if conflicts--; conflicts < 0 {
			return false, nil, nil
		}
		return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, caName, nil)
	})
	k, hook := keeperOf(client, &now)
	for range 2 {
		err := k.pass(ctx)
		assert.Assert(t, apierrors.IsConflict(err), "%v", err)
		k.failed(err)
		_, err = k.GetCertificate(nil)
		assert.ErrorContains(t, err, "no certificate yet")
	}
	for _, e := range hook.AllEntries() {
		assert.Assert(t, e.Level > logrus.WarnLevel, "a conflict between replicas is nothing to warn of: %s", e.Message)
	}
	assert.NilError(t, k.pass(ctx))
	assert.NilError(t, k.Ready())
}

func TestMissingObjectsAreNamed(t *testing.T) {
	now := start
	for name, objects := range map[string][]runtime.Object{"ConfigMap": shipped()[:1], "Secret": shipped()[1:]} {
		k, hook := keeperOf(fake.NewClientset(objects...), &now)
		for range 3 {
			k.failed(k.pass(context.Background()))
		}
		assert.ErrorContains(t, k.Ready(), "reading "+name+" bottlerocket/update-operator-proxy-")
		assert.Equal(t, len(hook.AllEntries()), 1, "said once")
	}
}

// TestDeletedObjects holds that the loss of an object costs no agent its proxy: what is in use is served on, with word of
// what is so, and goes back to its place once that is there again, also where another replica comes first to it.
func TestDeletedObjects(t *testing.T) {
	ctx := context.Background()
	for _, kind := range []string{"Secret", "ConfigMap"} {
		t.Run(kind, func(t *testing.T) {
			now := start
			client := fake.NewClientset(shipped()...)
			holder, _ := keeperOf(client, &now)
			assert.NilError(t, holder.pass(ctx))
			secrets, configs := client.CoreV1().Secrets(namespace), client.CoreV1().ConfigMaps(namespace)
			before, err := secrets.Get(ctx, secretName, metav1.GetOptions{})
			assert.NilError(t, err)
			told, err := configs.Get(ctx, caName, metav1.GetOptions{})
			assert.NilError(t, err)

			if kind == "Secret" {
				assert.NilError(t, secrets.Delete(ctx, secretName, metav1.DeleteOptions{}))
			} else {
				assert.NilError(t, configs.Delete(ctx, caName, metav1.DeleteOptions{}))
			}
			now = now.Add(life.Serving / 3)
			err = holder.pass(ctx)
			assert.ErrorContains(t, err, kind+" bottlerocket/update-operator-proxy-")
			assert.ErrorContains(t, err, "it was deleted; apply update-operator.yaml again")
			assert.ErrorContains(t, err, "is served until")
			assert.NilError(t, holder.Ready())

			if kind == "Secret" {
				_, err = secrets.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secretName}}, metav1.CreateOptions{})
			} else {
				_, err = configs.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: caName}}, metav1.CreateOptions{})
			}
			assert.NilError(t, err)
			fresh, _ := keeperOf(client, &now)
			if kind == "Secret" {
				assert.ErrorContains(t, fresh.pass(ctx), "is empty while agents trust a CA")
			}
			assert.NilError(t, holder.pass(ctx))
			assert.NilError(t, fresh.pass(ctx))
			after, err := secrets.Get(ctx, secretName, metav1.GetOptions{})
			assert.NilError(t, err)
			assert.DeepEqual(t, after.Data, before.Data)
			tell, err := configs.Get(ctx, caName, metav1.GetOptions{})
			assert.NilError(t, err)
			assert.DeepEqual(t, tell.Data, told.Data)
		})
	}
}

// TestNothingLeftToRestore holds that an empty Secret is filled anew where no replica has anything in use any more.
func TestNothingLeftToRestore(t *testing.T) {
	ctx, now := context.Background(), start
	objects := shipped()
	objects[1].(*corev1.ConfigMap).Data = map[string]string{bundleKey: string(made(t)[keyCA])}
	k, _ := keeperOf(fake.NewClientset(objects...), &now)
	assert.ErrorContains(t, k.pass(ctx), "is empty")
	now = now.Add(restoredAfter*k.interval() - 1)
	assert.ErrorContains(t, k.pass(ctx), "is empty")
	now = now.Add(1)
	assert.NilError(t, k.pass(ctx))
	assert.NilError(t, k.Ready())
}

func TestCertificateOfTheUsersOwn(t *testing.T) {
	ctx, now := context.Background(), start
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		assert.NilError(t, os.WriteFile(path, data, 0o600))
		return path
	}
	own := made(t)
	client := fake.NewClientset(shipped()...)
	k, _ := keeperOf(client, &now)
	k.c.CertFile, k.c.KeyFile = write("tls.crt", own[keyServing]), write("tls.key", own[keyKey])
	served := func() []byte {
		t.Helper()
		c, err := k.GetCertificate(nil)
		assert.NilError(t, err)
		return c.Certificate[0]
	}
	bundleSaid := func() string {
		t.Helper()
		config, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, caName, metav1.GetOptions{})
		assert.NilError(t, err)
		return config.Data[bundleKey]
	}
	assert.NilError(t, k.pass(ctx))
	assert.DeepEqual(t, served(), parse(own[keyServing]).Raw)
	assert.Equal(t, bundleSaid(), "", "agents are told by the user")
	secret, err := client.CoreV1().Secrets(namespace).Get(ctx, secretName, metav1.GetOptions{})
	assert.NilError(t, err)
	assert.Equal(t, len(secret.Data), 0)

	k.c.CertCAFile = write("ca.crt", own[keyCA])
	assert.NilError(t, k.pass(ctx))
	assert.Equal(t, bundleSaid(), string(own[keyCA]))

	// Half of a change is no pair: the old one is served until the other half is there.
	renewed := made(t)
	write("tls.crt", renewed[keyServing])
	assert.ErrorContains(t, k.pass(ctx), "serving certificate")
	assert.DeepEqual(t, served(), parse(own[keyServing]).Raw)
	write("tls.key", renewed[keyKey])
	assert.NilError(t, k.pass(ctx))
	assert.DeepEqual(t, served(), parse(renewed[keyServing]).Raw)

	k.c.ServerName = "other.example"
	assert.ErrorContains(t, k.pass(ctx), "other.example")
	k.c.ServerName = serverName
	write("ca.crt", []byte("nothing"))
	assert.ErrorContains(t, k.pass(ctx), "holds no certificate")
	assert.NilError(t, os.Remove(k.c.KeyFile))
	assert.ErrorContains(t, k.pass(ctx), "tls.key")
}

func TestRunEnds(t *testing.T) {
	now := start
	k, _ := keeperOf(fake.NewClientset(shipped()...), &now)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	k.Run(ctx)
}
