package apiserver_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// What a runner of plans asks for is answered as by a real server: templates and Secrets, creations that are a dry run,
// and pods that a finalizer keeps.
func TestPlansLikeARealServer(t *testing.T) {
	t.Parallel()
	const name = "p0"
	templates := func(s *side, change func(*corev1.PodTemplate)) string {
		p := s.old("PodTemplate", "t0", newest).(*corev1.PodTemplate).DeepCopy()
		change(p)
		p, err := s.client.CoreV1().PodTemplates(s.namespace).Update(s.ctx, p, metav1.UpdateOptions{})
		return s.answer(p, err)
	}
	newTemplate := func(s *side) string {
		p := &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Name: "t0"}}
		p.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "i", TerminationMessagePath: "/x", TerminationMessagePolicy: "File", ImagePullPolicy: "Always"}}
		p.Template.Spec.RestartPolicy, p.Template.Spec.DNSPolicy, p.Template.Spec.SchedulerName = "Always", "ClusterFirst", "s"
		p.Template.Spec.TerminationGracePeriodSeconds, p.Template.Spec.SecurityContext = new(int64(30)), &corev1.PodSecurityContext{}
		p, err := s.client.CoreV1().PodTemplates(s.namespace).Create(s.ctx, p, metav1.CreateOptions{})
		return s.answer(p, err)
	}
	newSecret := func(s *side) string {
		o, err := s.client.CoreV1().Secrets(s.namespace).Create(s.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s0"}}, metav1.CreateOptions{})
		return s.answer(o, err)
	}
	secret := func(w which) func(s *side) string {
		return func(s *side) string {
			o := s.old("Secret", "s0", w).(*corev1.Secret).DeepCopy()
			o.Data = map[string][]byte{"key": []byte("v")}
			o, err := s.client.CoreV1().Secrets(s.namespace).Update(s.ctx, o, metav1.UpdateOptions{})
			return s.answer(o, err)
		}
	}
	create := func(o metav1.CreateOptions) func(s *side) string {
		return func(s *side) string {
			p := newPod(name, s.node("n0"), "x")
			p.Finalizers = []string{"example.com/plan"}
			p, err := s.pods().Create(s.ctx, p, o)
			if err == nil && len(o.DryRun) > 0 {
				return "would be made"
			}
			return s.answer(p, err)
		}
	}
	get := func(s *side) string {
		p, err := s.pods().Get(s.ctx, name, metav1.GetOptions{})
		return s.answer(p, err)
	}
	remove := func(o metav1.DeleteOptions) func(s *side) string {
		return func(s *side) string { return s.answer(nil, s.pods().Delete(s.ctx, name, o)) }
	}
	release := func(s *side) string {
		p, err := s.pods().Patch(s.ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":[]}}`), metav1.PatchOptions{})
		return s.answer(p, err)
	}
	ended := func(s *side) string {
		p := s.old("Pod", name, newest).(*corev1.Pod).DeepCopy()
		p.Status.Phase = corev1.PodFailed
		p, err := s.pods().UpdateStatus(s.ctx, p, metav1.UpdateOptions{})
		return s.answer(p, err)
	}
	try := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
	compare(t, realClient(t), sequences+1, []request{
		{"create template", newTemplate}, {"create template again", newTemplate},
		{"change template", func(s *side) string {
			return templates(s, func(p *corev1.PodTemplate) { p.Template.Annotations = map[string]string{"a": "b"} })
		}},
		{"label template", func(s *side) string {
			return templates(s, func(p *corev1.PodTemplate) { p.Labels = map[string]string{"a": "b"} })
		}},
		{"create secret", newSecret}, {"create secret again", newSecret}, {"update secret", secret(newest)}, {"update secret from an older one", secret(older)},
		{"try pod", create(try)}, {"get pod", get}, {"create pod", create(metav1.CreateOptions{})}, {"try pod again", create(try)}, {"create pod again", create(metav1.CreateOptions{})},
		{"delete pod", remove(metav1.DeleteOptions{})}, {"get pod", get}, {"pod ended", ended}, {"delete pod now", remove(now)}, {"get pod", get},
		{"delete pod again", remove(metav1.DeleteOptions{})}, {"get pod", get}, {"release pod", release}, {"get pod", get},
		{"create pod once more", create(metav1.CreateOptions{})}, {"release pod", release}, {"delete pod now", remove(now)}, {"get pod", get},
		{"create pod that waits", create(metav1.CreateOptions{})}, {"delete pod now", remove(now)}, {"get pod", get}, {"release pod", release}, {"get pod", get},
	})
}
