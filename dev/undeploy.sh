#!/bin/sh
# Takes the operator off the cluster of the current context: the controller gives every node back, and only then is
# what update-operator.yaml made deleted. It may be interrupted and run again.
set -eu

kubectl=${KUBECTL:-kubectl}
namespace=${NAMESPACE:-bottlerocket}

# Nobody else takes back what was done to the nodes.
if ! "$kubectl" -n "$namespace" wait --for=condition=Available deployment/update-operator-controller --timeout="${PATIENCE:-5m}"; then
	echo "undeploy: no controller is there to give the nodes back; if the operator is gone already, 'kubectl bottlerocket clean --all' takes back what it left" >&2
	exit 1
fi

unlabel() {
	for key in bottlerocket.aws/updater-interface-version bottlerocket.aws/platform-version; do
		said=$("$kubectl" label node -l "$key" "$key-" 2>&1) || { echo "$said" >&2; exit 1; }
		case $said in '' | 'No resources found') ;; *) echo "$said" ;; esac
	done
}

# Nodes that the controller hasn't given back yet, or that an agent reported on after that.
left() {
	"$kubectl" get nodes -o jsonpath='{range .items[?(@.metadata.annotations.bottlerocket\.aws/intent-id)]}{.metadata.name}{"\n"}{end}{range .items[?(@.metadata.annotations.bottlerocket\.aws/protocol)]}{.metadata.name}{"\n"}{end}'
}

unlabel
"$kubectl" -n "$namespace" wait --for=delete pod -l app.kubernetes.io/component=agent --timeout=2h
before=
while :; do
	nodes=$(left)
	[ -n "$nodes" ] || break
	nodes=$(printf '%s\n' "$nodes" | sort -u | tr '\n' ' ')
	[ "$nodes" = "$before" ] || echo "waiting for $nodes"
	before=$nodes
	sleep 2
	# A node that joins meanwhile may bring the label with it.
	unlabel
done
"$kubectl" delete --ignore-not-found -f update-operator.yaml
