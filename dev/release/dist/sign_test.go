package dist

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
)

// make sign signs the checksums and the image that the manifest names, with a key alone; cosign takes both as
// docs/releasing.md says, and refuses a changed file, another image and another key (issue 19, part 3).
func TestSign(t *testing.T) {
	if !*full {
		t.Skip("it compiles cosign: -args -full")
	}
	root, err := controlplane.Root()
	assert.NilError(t, err)
	env := append(goEnv(t), "COSIGN_PASSWORD=secret", "TMPDIR="+t.TempDir())
	// Nothing of this machine's is read: no configuration, no credentials.
	home := t.TempDir()
	env = append(env, "HOME="+home, "DOCKER_CONFIG="+home)
	run(t, root, env, "make", "cosign")
	cosign := filepath.Join(root, "bin", "cosign")
	keys, others := t.TempDir(), t.TempDir()
	run(t, keys, env, cosign, "generate-key-pair")
	run(t, others, env, cosign, "generate-key-pair")

	at := registryForTest(t) + "/operator"
	push := func() string {
		index, err := random.Index(64, 1, 2)
		assert.NilError(t, err)
		digest, err := index.Digest()
		assert.NilError(t, err)
		ref, err := name.ParseReference(at + "@" + digest.String())
		assert.NilError(t, err)
		assert.NilError(t, remote.WriteIndex(ref, index))
		return ref.String()
	}
	image, unsigned := push(), push()
	release := t.TempDir()
	sumsAt := filepath.Join(release, sumsFile)
	assert.NilError(t, os.WriteFile(sumsAt, []byte("sums\n"), 0o600))
	manifest := "          image: public.ecr.aws/operator@" + strings.TrimPrefix(image, at+"@") + "\n"
	assert.NilError(t, os.WriteFile(filepath.Join(release, "update-operator.yaml"), []byte(manifest), 0o600))
	run(t, root, env, "make", "sign", "KEY="+filepath.Join(keys, "cosign.key"), "DIST="+release, "IMAGE="+at)

	verify := func(args ...string) error {
		cmd := exec.Command(cosign, slices.Insert(args, 1, "--insecure-ignore-tlog", "--key")...)
		cmd.Env = append(os.Environ(), env...)
		said, err := cmd.CombinedOutput()
		t.Logf("%v: %v\n%s", args, err, said)
		return err
	}
	key, other, bundle := filepath.Join(keys, "cosign.pub"), filepath.Join(others, "cosign.pub"), sumsAt+".sigstore.json"
	assert.NilError(t, verify("verify-blob", key, "--bundle", bundle, sumsAt))
	assert.NilError(t, verify("verify", key, image))
	assert.ErrorContains(t, verify("verify-blob", other, "--bundle", bundle, sumsAt), "exit status")
	assert.ErrorContains(t, verify("verify", other, image), "exit status")
	assert.ErrorContains(t, verify("verify", key, unsigned), "exit status")
	assert.NilError(t, os.WriteFile(sumsAt, []byte("changed\n"), 0o600))
	assert.ErrorContains(t, verify("verify-blob", key, "--bundle", bundle, sumsAt), "exit status")
}
