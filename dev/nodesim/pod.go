package nodesim

import (
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// accountDir is where containers find their default token, authority and
// namespace.
const accountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// Pod is what a Config.Command gets to make a process of.
type Pod struct {
	*corev1.Pod
	// Machine is where it was scheduled to.
	Machine *Machine
	// Dir is a folder of the pod's own; it goes with the pod and its contents
	// survive a restart of the process.
	Dir string
	// Cluster is the control plane.
	Cluster *controlplane.ControlPlane

	volumes map[string]string // name -> folder
}

// Container is the pod's only container.
func (p Pod) Container() corev1.Container { return p.Spec.Containers[0] }

// Path says where a path inside the container is for the process: its volumes
// are folders here. Paths on a hostPath volume stay as they are.
func (p Pod) Path(inside string) (string, error) {
	best, found := corev1.VolumeMount{}, false
	for _, m := range p.Container().VolumeMounts {
		at := path.Clean(m.MountPath)
		if (inside == at || strings.HasPrefix(inside, at+"/")) && len(at) >= len(best.MountPath) {
			best, found = m, true
		}
	}
	if !found {
		return "", errors.Errorf("no volume of pod %q is mounted at %q", p.Name, inside)
	}
	rest := strings.TrimPrefix(inside, path.Clean(best.MountPath))
	dir, ok := p.volumes[best.Name]
	if !ok {
		return "", errors.Errorf("volume %q of pod %q is of a kind that isn't simulated", best.Name, p.Name)
	}
	if best.SubPath != "" {
		dir = filepath.Join(dir, best.SubPath)
	}
	return dir + filepath.FromSlash(rest), nil
}

// Env is the container's environment: the API server's address, then what services says, as kubelets write of
// Services, and then the container's own variables. References to the pod's fields and to variables are resolved.
func (p Pod) Env(services ...corev1.EnvVar) ([]string, error) {
	values, names, err := p.variables(services)
	if err != nil {
		return nil, err
	}
	var env []string
	for _, name := range names {
		env = append(env, name+"="+values[name])
	}
	return env, nil
}

// Args are the container's arguments with references to the variables of that environment resolved.
func (p Pod) Args(services ...corev1.EnvVar) ([]string, error) {
	values, _, err := p.variables(services)
	if err != nil {
		return nil, err
	}
	var args []string
	for _, a := range p.Container().Args {
		args = append(args, expand(a, values))
	}
	return args, nil
}

// variables are the environment by name, and the names in the order in which they were first set.
func (p Pod) variables(services []corev1.EnvVar) (values map[string]string, names []string, err error) {
	at, err := url.Parse(p.Cluster.URL())
	if err != nil {
		return nil, nil, errors.Wrap(err, "reading the API server's address")
	}
	if len(p.Container().EnvFrom) > 0 {
		return nil, nil, errors.Errorf("pod %q takes variables from ConfigMaps or Secrets (envFrom), which isn't simulated", p.Name)
	}
	values = map[string]string{}
	set := func(name, value string) {
		if _, there := values[name]; !there {
			names = append(names, name)
		}
		values[name] = value
	}
	set("KUBERNETES_SERVICE_HOST", at.Hostname())
	set("KUBERNETES_SERVICE_PORT", at.Port())
	for _, e := range append(slices.Clone(services), p.Container().Env...) {
		if e.ValueFrom == nil {
			set(e.Name, expand(e.Value, values))
			continue
		}
		if e.ValueFrom.FieldRef == nil {
			return nil, nil, errors.Errorf("variable %q of pod %q has a source that isn't simulated", e.Name, p.Name)
		}
		value, err := field(p.Pod, p.Machine, e.ValueFrom.FieldRef.FieldPath)
		if err != nil {
			return nil, nil, err
		}
		set(e.Name, value)
	}
	return values, names, nil
}

// reference is a variable in arguments and values, or an escaped one.
var reference = regexp.MustCompile(`\$\$|\$\([A-Za-z_.-][A-Za-z0-9_.-]*\)`)

// expand resolves $(NAME) as kubelets do: a name that isn't known stays as it is, and $$ is one dollar.
func expand(text string, values map[string]string) string {
	return reference.ReplaceAllStringFunc(text, func(found string) string {
		if found == "$$" {
			return "$"
		}
		if value, ok := values[found[2:len(found)-1]]; ok {
			return value
		}
		return found
	})
}

// Kubeconfig writes a kubeconfig that does what a container finds in
// /var/run/secrets: the API server's address, the authority, and the file with
// the pod's token, which is read again when it is renewed.
func (p Pod) Kubeconfig() (string, error) {
	token, err := p.Path(accountDir + "/token")
	if err != nil {
		return "", err
	}
	ca, err := p.Path(accountDir + "/ca.crt")
	if err != nil {
		return "", err
	}
	const name = "pod"
	out := clientcmdapi.NewConfig()
	out.Clusters[name] = &clientcmdapi.Cluster{Server: p.Cluster.URL(), CertificateAuthority: ca}
	out.AuthInfos[name] = &clientcmdapi.AuthInfo{TokenFile: token}
	out.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: p.Namespace}
	out.CurrentContext = name
	file := filepath.Join(p.Dir, "kubeconfig")
	return file, errors.Wrap(clientcmd.WriteToFile(*out, file), "writing a kubeconfig")
}

// HostSocket is the host's API socket as it is mounted into the container that is about to start: the one
// that is there now. A socket that the host makes later is another, which only a later container gets.
func (p Pod) HostSocket() (string, error) {
	mount := p.Machine.socket + "." + string(p.UID)[:8]
	if err := os.Remove(mount); err != nil && !os.IsNotExist(err) {
		return "", errors.Wrap(err, "unmounting a socket")
	}
	return mount, errors.Wrap(os.Link(p.Machine.socket, mount), "mounting the host's socket")
}

// field is the value of a field path of the downward API.
func field(pod *corev1.Pod, m *Machine, fieldPath string) (string, error) {
	switch fieldPath {
	case "metadata.name":
		return pod.Name, nil
	case "metadata.namespace":
		return pod.Namespace, nil
	case "metadata.uid":
		return string(pod.UID), nil
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.hostIP":
		return m.hostIP(), nil
	case "status.podIP":
		return "127.0.0.1", nil
	}
	return "", errors.Errorf("field %q of pod %q isn't simulated", fieldPath, pod.Name)
}
