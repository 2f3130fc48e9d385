package nodesim

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
)

// Config is what all machines of a fleet have in common.
type Config struct {
	// Namespace is where every pod runs as a real process.
	Namespace string
	// Command says what runs for a pod of that namespace. It is called before
	// each start of the process, with the pod's volumes in place. An error is
	// shown in the pod's status and tried again.
	Command func(Pod) (Command, error)

	// LeaseDuration is that of the node Leases, whole seconds; they are renewed
	// four times as often. Zero is 40 s, as kubelets have it.
	LeaseDuration time.Duration
	// PodStop is how long an ordinary pod takes to go after its deletion.
	PodStop time.Duration
	// KubeletStart is the time from the boot of the host to the first word of
	// its kubelet.
	KubeletStart time.Duration
	// KubeletVersion is what the nodes report; empty is the control plane's.
	KubeletVersion string
	// Reboot is how machines reboot if their MachineConfig doesn't say.
	Reboot Reboot
}

// MachineConfig is one machine.
type MachineConfig struct {
	// Name is the node's.
	Name string
	// Labels and Annotations are put on the Node when it is created.
	Labels, Annotations map[string]string
	// Host is the Bottlerocket host. Its Name and OnReboot are set here.
	Host hostsim.Config
	// Reboot is how it reboots; nil takes the fleet's.
	Reboot *Reboot
	// OSImage is what the kubelet calls its system; empty is that of the Bottlerocket host.
	OSImage string
	// KubeletVersion is what the kubelet reports at first; empty is the fleet's.
	KubeletVersion string
	// Plan says what the pod of a plan does to the machine. Without it pods of plans are like all others.
	Plan func(*corev1.Pod) PlanRun
}

// RebootMode is what the API shows of a reboot.
type RebootMode string

// What happens in life, both.
const (
	// RebootStale: the machine is back before the node lifecycle notices. Ready stays
	// True all along, with the old boot ID until the kubelet is back.
	RebootStale RebootMode = "stale"
	// RebootShutdown: the kubelet says goodbye. Ready is False with reason
	// KubeletNotReady before the power goes.
	RebootShutdown RebootMode = "shutdown"
)

// Reboot says how a machine reboots.
type Reboot struct {
	// Mode defaults to RebootStale.
	Mode RebootMode
	// Down is the time without power.
	Down time.Duration
}

// Command is a process to run for a pod.
type Command struct {
	Path string
	Args []string
	// Env is the whole environment, besides PATH.
	Env []string
	// Ready is the URL of the readiness probe: any answer from 200 to 399 is
	// ready. Its certificate is not checked, as kubelets do. Empty: ready while
	// it runs.
	Ready string
}
