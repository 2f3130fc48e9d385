package controlplane

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	"gotest.tools/v3/poll"
	authnv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/process"
)

var full = Shared{Config: Config{ControllerManager: true, Scheduler: true, AuditLog: true}}

func TestMain(m *testing.M) { os.Exit(full.Main(m)) }

func clientFor(t *testing.T, cfg *rest.Config) kubernetes.Interface {
	t.Helper()
	c, err := kubernetes.NewForConfig(cfg)
	assert.NilError(t, err)
	return c
}

func TestServesTheVersionItWasBuiltFrom(t *testing.T) {
	cp := full.Get(t)
	v, err := clientFor(t, cp.AdminConfig()).Discovery().ServerVersion()
	assert.NilError(t, err)
	assert.Equal(t, v.GitVersion, cp.Binaries().Version)
}

func TestUsersHaveOnlyTheRightsThatRBACGives(t *testing.T) {
	cp := full.Get(t)
	cfg, err := cp.UserConfig("nobody", "testers")
	assert.NilError(t, err)
	_, err = clientFor(t, cfg).CoreV1().Nodes().List(context.Background(), metav1.ListOptions{})
	assert.Assert(t, apierrors.IsForbidden(err), "%v", err)
	assert.ErrorContains(t, err, `"nobody"`)
}

func TestTokenOfAPodNamesItsNode(t *testing.T) {
	cp := full.Get(t)
	ctx := context.Background()
	admin := clientFor(t, cp.AdminConfig())
	_, err := admin.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}}, metav1.CreateOptions{})
	assert.NilError(t, err)
	pod, err := admin.CoreV1().Pods("default").Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec:       corev1.PodSpec{NodeName: "one", Containers: []corev1.Container{{Name: "c", Image: "none"}}},
	}, metav1.CreateOptions{})
	assert.NilError(t, err)
	token, err := admin.CoreV1().ServiceAccounts("default").CreateToken(ctx, "default", &authnv1.TokenRequest{
		Spec: authnv1.TokenRequestSpec{
			Audiences:      []string{"door"},
			BoundObjectRef: &authnv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: "p", UID: pod.UID},
		},
	}, metav1.CreateOptions{})
	assert.NilError(t, err)
	review, err := admin.AuthenticationV1().TokenReviews().Create(ctx, &authnv1.TokenReview{
		Spec: authnv1.TokenReviewSpec{Token: token.Status.Token, Audiences: []string{"door"}},
	}, metav1.CreateOptions{})
	assert.NilError(t, err)
	assert.Assert(t, review.Status.Authenticated, review.Status.Error)
	assert.DeepEqual(t, review.Status.User.Extra["authentication.kubernetes.io/node-name"], authnv1.ExtraValue{"one"})
	assert.NilError(t, admin.CoreV1().Pods("default").Delete(ctx, "p", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
	assert.NilError(t, admin.CoreV1().Nodes().Delete(ctx, "one", metav1.DeleteOptions{}))
}

func TestAuditLogTellsWhoDidWhat(t *testing.T) {
	cp := full.Get(t)
	cfg, err := cp.UserConfig("curious")
	assert.NilError(t, err)
	_, _ = clientFor(t, cfg).CoreV1().Nodes().Get(context.Background(), "absent", metav1.GetOptions{})
	poll.WaitOn(t, func(poll.LogT) poll.Result {
		b, err := os.ReadFile(cp.AuditLog())
		if err != nil {
			return poll.Error(err)
		}
		for line := range strings.Lines(string(b)) {
			var e struct {
				Verb           string
				User           struct{ Username string }
				ObjectRef      struct{ Resource, Name string }
				ResponseStatus struct{ Code int }
			}
			if json.Unmarshal([]byte(line), &e) != nil || e.User.Username != "curious" {
				continue
			}
			if e.Verb == "get" && e.ObjectRef.Resource == "nodes" && e.ObjectRef.Name == "absent" && e.ResponseStatus.Code == 403 {
				return poll.Success()
			}
		}
		return poll.Continue("no such event yet")
	}, poll.WithTimeout(10*time.Second))
}

func TestAPIServerComesBackOnTheSamePort(t *testing.T) {
	cp := full.Get(t)
	url := cp.URL()
	admin := clientFor(t, cp.AdminConfig())
	cp.StopAPIServer()
	_, err := admin.CoreV1().Nodes().List(context.Background(), metav1.ListOptions{})
	assert.ErrorContains(t, err, "refused")
	assert.NilError(t, cp.StartAPIServer(context.Background()))
	assert.Equal(t, cp.URL(), url)
	_, err = admin.CoreV1().Nodes().List(context.Background(), metav1.ListOptions{})
	assert.NilError(t, err)
}

func TestEtcdKeepsWhatItAnsweredFor(t *testing.T) {
	cp := full.Get(t)
	ctx := context.Background()
	maps := clientFor(t, cp.AdminConfig()).CoreV1().ConfigMaps("default")
	_, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}, metav1.CreateOptions{})
	assert.NilError(t, err)
	cp.StopEtcd()
	assert.NilError(t, cp.Alive())
	assert.NilError(t, cp.StartEtcd(ctx))
	assert.NilError(t, cp.AwaitAPIServer(ctx))
	_, err = maps.Get(ctx, "kept", metav1.GetOptions{})
	assert.NilError(t, err)
}

func TestCompactionExpiresTheWatchesThatComeBack(t *testing.T) {
	cp := full.Get(t)
	ctx := context.Background()
	expired := func() int {
		log, err := os.ReadFile(cp.APIServerLog())
		assert.NilError(t, err)
		return strings.Count(string(log), "required revision has been compacted")
	}
	before := expired()
	assert.NilError(t, cp.PauseAPIServer())
	cp.StopEtcd()
	assert.NilError(t, cp.StartEtcd(ctx))
	assert.NilError(t, cp.CompactEtcd(ctx))
	assert.NilError(t, cp.ResumeAPIServer())
	assert.NilError(t, cp.AwaitAPIServer(ctx))
	poll.WaitOn(t, func(poll.LogT) poll.Result {
		if expired() > before {
			return poll.Success()
		}
		return poll.Continue("no watch has expired yet")
	}, poll.WithTimeout(time.Minute))
	_, err := clientFor(t, cp.AdminConfig()).CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	assert.NilError(t, err)
}

func TestWithoutControllerManagerPodsNeedNoServiceAccount(t *testing.T) {
	cp := ForTest(t, Config{NoWatchList: true})
	ctx := context.Background()
	admin := clientFor(t, cp.AdminConfig())
	_, err := admin.CoreV1().Pods("default").Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec:       corev1.PodSpec{NodeName: "one", Containers: []corev1.Container{{Name: "c", Image: "none"}}},
	}, metav1.CreateOptions{})
	assert.NilError(t, err)
	_, err = admin.CoreV1().Pods("default").Watch(ctx, metav1.ListOptions{
		SendInitialEvents: new(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true,
	})
	assert.ErrorContains(t, err, "sendInitialEvents")
	dir := cp.Dir()
	cp.Stop()
	_, err = os.Stat(dir)
	assert.Assert(t, os.IsNotExist(err), "%v", err)
}

func TestAliveNamesTheProgramThatEnded(t *testing.T) {
	cp := ForTest(t, Config{})
	assert.NilError(t, cp.Alive())
	cp.StopAPIServer()
	assert.NilError(t, cp.Alive(), "an outage is no accident")
	cp.etcd.Kill()
	assert.ErrorContains(t, cp.Alive(), "etcd ended")
}

// A scheduler that ends by itself is started again, a few times; then it is one that ended.
func TestSchedulerIsKept(t *testing.T) {
	cp := ForTest(t, Config{Scheduler: true})
	scheduler := func() *process.Process {
		cp.mu.Lock()
		defer cp.mu.Unlock()
		return cp.scheduler
	}
	for range schedulerEnds {
		ended := scheduler()
		ended.Kill()
		poll.WaitOn(t, func(poll.LogT) poll.Result {
			if p := scheduler(); p != ended && p.Running() {
				return poll.Success()
			}
			return poll.Continue("it is not started again")
		}, poll.WithTimeout(30*time.Second))
		assert.NilError(t, cp.Alive())
	}
	scheduler().Kill()
	assert.ErrorContains(t, cp.Alive(), "kube-scheduler ended")
}

func TestStartLeavesNothingWhenItCannotStart(t *testing.T) {
	b, err := Build(context.Background(), Options{})
	assert.NilError(t, err)
	dir := t.TempDir()
	_, err = Start(context.Background(), Config{Binaries: b, Dir: dir, APIServerFlags: []string{"--no-such-flag"}})
	assert.ErrorContains(t, err, "no-such-flag")
}
