package preflight

// Check names one thing that is looked at.
type Check string

// The checks.
const (
	CheckAPIServer       Check = "APIServer"
	CheckKubelets        Check = "Kubelets"
	CheckClock           Check = "Clock"
	CheckNodeClocks      Check = "NodeClocks"
	CheckOtherUpdaters   Check = "OtherUpdaters"
	CheckInstallRights   Check = "InstallRights"
	CheckCommandRights   Check = "CommandRights"
	CheckAccountRights   Check = "AccountRights"
	CheckAgentRights     Check = "AgentRights"
	CheckNamespace       Check = "Namespace"
	CheckAdmission       Check = "AdmissionPolicies"
	CheckController      Check = "Controller"
	CheckLeader          Check = "Leader"
	CheckProxies         Check = "Proxies"
	CheckCertificate     Check = "Certificate"
	CheckAgents          Check = "Agents"
	CheckPlans           Check = "Plans"
	CheckImages          Check = "Images"
	CheckPolicy          Check = "Policy"
	CheckPauses          Check = "Pauses"
	CheckUnlabelled      Check = "UnlabelledNodes"
	CheckFresh           Check = "FreshNodes"
	CheckLabels          Check = "LabelValues"
	CheckOtherSystems    Check = "OtherSystems"
	CheckInPlace         Check = "InPlaceUpdates"
	CheckAnnotations     Check = "Annotations"
	CheckAutoscalerMarks Check = "AutoscalerMarks"
	CheckBudgets         Check = "Budgets"
	CheckSingleReplicas  Check = "SingleReplicas"
	CheckBarePods        Check = "BarePods"
)

// checks are in the order in which an administrator meets trouble: the cluster, the rights, the operator's parts, its
// policy, the nodes and what runs on them.
var checks = []struct {
	name  Check
	judge func(*Snapshot) []Finding
}{
	{CheckAPIServer, apiServer},
	{CheckKubelets, kubelets},
	{CheckClock, clock},
	{CheckNodeClocks, nodeClocks},
	{CheckOtherUpdaters, otherUpdaters},
	{CheckInstallRights, installRights},
	{CheckCommandRights, commandRights},
	{CheckAccountRights, accountRights},
	{CheckAgentRights, agentRights},
	{CheckNamespace, namespace},
	{CheckAdmission, admission},
	{CheckController, controller},
	{CheckLeader, leader},
	{CheckProxies, proxies},
	{CheckCertificate, certificate},
	{CheckAgents, agents},
	{CheckPlans, plans},
	{CheckImages, images},
	{CheckPolicy, judgePolicy},
	{CheckPauses, pauses},
	{CheckUnlabelled, unlabelled},
	{CheckFresh, freshNodes},
	{CheckLabels, labelValues},
	{CheckOtherSystems, otherSystems},
	{CheckInPlace, inPlace},
	{CheckAnnotations, annotations},
	{CheckAutoscalerMarks, autoscalerMarks},
	{CheckBudgets, budgets},
	{CheckSingleReplicas, singleReplicas},
	{CheckBarePods, barePods},
}

// Checks is the closed list, in the order of their findings.
func Checks() []Check {
	all := make([]Check, len(checks))
	for i, c := range checks {
		all[i] = c.name
	}
	return all
}
