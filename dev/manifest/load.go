package manifest

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"path/filepath"

	"github.com/pkg/errors"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
)

// FileName is the manifest's, in the top folder.
const FileName = "update-operator.yaml"

// The components, as the label app.kubernetes.io/component names them. Their containers have the same
// names.
const (
	Controller = "controller"
	Proxy      = "proxy"
	Agent      = "agent"
	// Runner is in components/plans/plans.yaml alone.
	Runner = "runner"
)

// Namespace is the operator's own.
const Namespace = "bottlerocket"

// LabelName and LabelComponent are on every pod of the operator; Name is the first one's value.
const (
	LabelName      = "app.kubernetes.io/name"
	LabelComponent = "app.kubernetes.io/component"
	Name           = "bottlerocket-update-operator"
)

// Objects is a manifest.
type Objects struct {
	// All are the objects in the order of the file; the other fields hold the same ones by kind.
	All []runtime.Object

	Namespaces          []*corev1.Namespace
	ServiceAccounts     []*corev1.ServiceAccount
	Secrets             []*corev1.Secret
	ConfigMaps          []*corev1.ConfigMap
	Services            []*corev1.Service
	Deployments         []*appsv1.Deployment
	DaemonSets          []*appsv1.DaemonSet
	Budgets             []*policyv1.PodDisruptionBudget
	Roles               []*rbacv1.Role
	RoleBindings        []*rbacv1.RoleBinding
	ClusterRoles        []*rbacv1.ClusterRole
	ClusterRoleBindings []*rbacv1.ClusterRoleBinding
	Policies            []*admissionv1.ValidatingAdmissionPolicy
	PolicyBindings      []*admissionv1.ValidatingAdmissionPolicyBinding
}

// Path is where this checkout's manifest is.
func Path() (string, error) {
	root, err := controlplane.Root()
	if err != nil {
		return "", err
	}
	return filepath.Join(root, FileName), nil
}

// Load reads this checkout's manifest.
func Load() (Objects, error) {
	path, err := Path()
	if err != nil {
		return Objects{}, err
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return Objects{}, errors.Wrap(err, "reading the manifest")
	}
	o, err := Decode(content)
	return o, errors.WithMessagef(err, "reading %s", path)
}

// Component returns what a component of the kustomization adds: force-drain, grace-period, network-policy, plans or
// pod-monitor.
func Component(name string) ([]byte, error) {
	root, err := controlplane.Root()
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(filepath.Join(root, "components", name, name+".yaml"))
	return content, errors.Wrapf(err, "reading the component %s", name)
}

// Decode reads a manifest. A field that the API doesn't know, or that stands there twice, is an error, and so
// is a kind that Objects has no place for.
func Decode(content []byte) (Objects, error) {
	docs, err := split(content)
	if err != nil {
		return Objects{}, err
	}
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	var o Objects
	for i, doc := range docs {
		obj, _, err := decoder.Decode(doc, nil, nil)
		if err != nil {
			return Objects{}, errors.Wrapf(err, "object %d", i+1)
		}
		if err := o.add(obj); err != nil {
			return Objects{}, errors.WithMessagef(err, "object %d", i+1)
		}
	}
	return o, nil
}

func split(content []byte) ([][]byte, error) {
	var docs [][]byte
	for r := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content))); ; {
		doc, err := r.Read()
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			return nil, errors.Wrap(err, "splitting YAML")
		}
		docs = append(docs, doc)
	}
}

func (o *Objects) add(obj runtime.Object) error {
	switch t := obj.(type) {
	case *corev1.Namespace:
		o.Namespaces = append(o.Namespaces, t)
	case *corev1.ServiceAccount:
		o.ServiceAccounts = append(o.ServiceAccounts, t)
	case *corev1.Secret:
		o.Secrets = append(o.Secrets, t)
	case *corev1.ConfigMap:
		o.ConfigMaps = append(o.ConfigMaps, t)
	case *corev1.Service:
		o.Services = append(o.Services, t)
	case *appsv1.Deployment:
		o.Deployments = append(o.Deployments, t)
	case *appsv1.DaemonSet:
		o.DaemonSets = append(o.DaemonSets, t)
	case *policyv1.PodDisruptionBudget:
		o.Budgets = append(o.Budgets, t)
	case *rbacv1.Role:
		o.Roles = append(o.Roles, t)
	case *rbacv1.RoleBinding:
		o.RoleBindings = append(o.RoleBindings, t)
	case *rbacv1.ClusterRole:
		o.ClusterRoles = append(o.ClusterRoles, t)
	case *rbacv1.ClusterRoleBinding:
		o.ClusterRoleBindings = append(o.ClusterRoleBindings, t)
	case *admissionv1.ValidatingAdmissionPolicy:
		o.Policies = append(o.Policies, t)
	case *admissionv1.ValidatingAdmissionPolicyBinding:
		o.PolicyBindings = append(o.PolicyBindings, t)
	default:
		return errors.Errorf("kind %s has no place in Objects yet", obj.GetObjectKind().GroupVersionKind().Kind)
	}
	o.All = append(o.All, obj)
	return nil
}
