package kube

// Names of the operator's own objects, as update-operator.yaml has them.
const (
	// Namespace is the operator's by default.
	Namespace = "bottlerocket"
	// LeaseName is the Lease that elects the leader among controllers.
	LeaseName = "update-operator-controller"
	// AgentSelector finds the pods of agents and runners, by default.
	AgentSelector = "app.kubernetes.io/name=bottlerocket-update-operator,app.kubernetes.io/component in (agent,runner)"
)
