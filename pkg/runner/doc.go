// Package runner is the loop that plays the agent for nodes of plans, those labelled updater-interface-version=plan: it
// makes one pod of a PodTemplate for each intent that names one, and answers by what the pod and the kubelet show.
//
//	options.go, config.go  flags, and what a runner is made from; start.go: how it is put together; time.go: its clock
//	runner.go              the queue of nodes; watch.go: what is watched, stripped of what isn't used
//	turn.go                one node's turn: look, decide (package next), carry out; look.go: looks, cached and live
//	write.go               reports, through the rule of package rule; pod.go: the pod; read.go: what a pod shows
//	plans.go               the plans of the policy; targets.go: what is known of them, for the controller
//	digest.go              what a plan's content is; key.go: the key of its digests
//
// It imports client-go, kube, telemetry and the pure packages, and no loop. It promises that a pod is asked for only
// after a live look at the Node and its pods, by a name that the intent alone decides, so that two runners, or one
// that was killed at any line, make one pod (S3); that each of its reports passed the rule of agents' reports (S4), on
// the resourceVersion that was judged; that what can't be read permits nothing (S8); and that nothing is written while
// nothing changes (L4). All that counts is on the Nodes and their pods.
//
// The permissions of its account, and no more:
//
//   - nodes: get, list, watch, patch
//   - in the namespace of plans: pods create, get, list, watch, patch, delete; pods/log get; podtemplates, configmaps
//     and secrets get, list, watch
//   - in its own namespace: the ConfigMap update-policy get, list, watch; the ConfigMap plan-targets get, list, watch,
//     update, and create of ConfigMaps; the Secret update-operator-runner get, update. The Secret is shipped without
//     data.
package runner
