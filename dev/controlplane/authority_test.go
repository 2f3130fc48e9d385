package controlplane

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"

	"gotest.tools/v3/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/port"
)

// With a port and a folder for its authority, a cluster is reached by the kubeconfig of the one before it.
func TestAKubeconfigOutlivesItsCluster(t *testing.T) {
	SkipIfShort(t)
	ctx := context.Background()
	kept, err := port.Reserve(0)
	assert.NilError(t, err)
	defer kept.Release()
	binaries, err := Build(ctx, Options{Progress: testProgress(t)})
	assert.NilError(t, err)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	authority := t.TempDir()
	for run := range 2 {
		cp, err := Start(ctx, Config{Binaries: binaries, Port: kept.Number(), AuthorityDir: authority})
		assert.NilError(t, err)
		t.Cleanup(cp.Stop)
		if run == 0 {
			content, err := os.ReadFile(cp.Kubeconfig())
			assert.NilError(t, err)
			assert.NilError(t, os.WriteFile(kubeconfig, content, 0o600))
		}
		admin, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		assert.NilError(t, err)
		_, err = clientFor(t, admin).CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
		assert.NilError(t, err, "run %d", run)
		cp.Stop()
	}
}

// A folder of which one file is lost, or doesn't belong to the other, gets a new authority.
func TestAnAuthorityThatCantBeReadIsMadeAnew(t *testing.T) {
	dir := t.TempDir()
	first, err := keptAuthority(dir)
	assert.NilError(t, err)
	again, err := keptAuthority(dir)
	assert.NilError(t, err)
	assert.DeepEqual(t, again.pem, first.pem)

	other, err := newAuthority()
	assert.NilError(t, err)
	assert.NilError(t, os.WriteFile(filepath.Join(dir, "ca.crt"), other.pem, 0o600))
	anew, err := keptAuthority(dir)
	assert.NilError(t, err)
	pair, err := anew.client("user", nil)
	assert.NilError(t, err)
	roots := x509.NewCertPool()
	content, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	assert.NilError(t, err)
	assert.Assert(t, roots.AppendCertsFromPEM(content))
	_, err = parse(t, pair.cert).Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	assert.NilError(t, err)
}

func parse(t *testing.T, content []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(content)
	cert, err := x509.ParseCertificate(block.Bytes)
	assert.NilError(t, err)
	return cert
}
