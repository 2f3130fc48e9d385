package kube

// Names of the operator's own objects, as update-operator.yaml has them.
const (
	// Namespace is the operator's, unless it is told another.
	Namespace = "bottlerocket"
	// LeaseName is the Lease that elects the leader among controllers.
	LeaseName = "update-operator-controller"
	// AgentSelector finds the agents' pods, unless the controller is told another.
	AgentSelector = "app.kubernetes.io/name=bottlerocket-update-operator,app.kubernetes.io/component=agent"
)
