#!/bin/sh
# Takes the operator off the cluster of the current context: the controller uncordons every node, and only then is
# what update-operator.yaml and the components made deleted. It may be interrupted and run again.
set -eu

kubectl=${KUBECTL:-kubectl}
namespace=${NAMESPACE:-bottlerocket}
# What deletes the operator, if kubectl did not install it from this folder: helm uninstall, kubectl delete -k.
remove=${REMOVE:-}
# After so many minutes, and again after as many more, it says how to go on without nodes that aren't uncordoned.
minutes=${MINUTES:-10}
keys='bottlerocket.aws/updater-interface-version bottlerocket.aws/platform-version'

labelled() {
	for key in $keys; do
		"$kubectl" get nodes -l "$key" -o name || return
	done
}

unlabel() {
	for key in $keys; do
		said=$("$kubectl" label node -l "$key" "$key-" 2>&1) || { echo "$said" >&2; exit 1; }
		case $said in '' | 'No resources found') ;; *) echo "$said" ;; esac
	done
}

# Nodes that the controller hasn't uncordoned yet, or that an agent reported on after that, and what each waits for.
left() {
	"$kubectl" get nodes -o go-template='{{range .items}}{{$name := .metadata.name}}{{with .metadata.annotations}}{{if or (index . "bottlerocket.aws/intent-id") (index . "bottlerocket.aws/protocol")}}{{$name}}{{with index . "bottlerocket.aws/waiting-for"}} {{printf "%.400q" .}}{{end}}{{with index . "bottlerocket.aws/lock"}} its host is to be unlocked: {{printf "%.400q" .}}{{end}}{{"\n"}}{{end}}{{end}}{{end}}'
}

# What to type on the hosts that the operator has locked, where no agent can do it: a line for each such node.
unlocking() {
	sed -n 's/^\([^ ]*\) .*its host is to be unlocked: .*\\"before\\":\\"\([^\\"]*\)\\".*$/  On the host of \1: apiclient set updates.version-lock=\2/p'
}

# Nodes with the mark by which a controller whose policy has autoLabel knows that they were in its care. It goes last: a
# controller that still runs would label them again.
remembered() {
	"$kubectl" get nodes -o jsonpath='{range .items[?(@.metadata.annotations.bottlerocket\.aws/auto-labelled)]}{.metadata.name}{" "}{end}'
}

# Nodes that the startup taint of fresh nodes keeps workloads away from.
tainted() {
	"$kubectl" get nodes -o jsonpath='{range .items[*]}{.metadata.name}{" "}{.spec.taints[?(@.key=="bottlerocket.aws/fresh")].effect}{"\n"}{end}' | sed -n 's/ ..*$//p'
}

# Each is a command of its own, so that one that fails ends the script and isn't taken for "none".
marked=$(left)
managed=$(labelled)
controller=$("$kubectl" -n "$namespace" get deployment update-operator-controller --ignore-not-found -o name)
[ -n "$controller" ] || managed=

# Only the controller takes back what was done to the nodes. Where nothing was done it isn't needed.
if [ -n "$marked$managed" ] &&
	! "$kubectl" -n "$namespace" wait --for=condition=Available deployment/update-operator-controller --timeout="${PATIENCE:-5m}"; then
	echo "undeploy: no controller is there to uncordon the nodes; if the operator is gone already, 'kubectl bottlerocket clean --all' takes back what it left" >&2
	exit 1
fi

unlabel
# An agent that still runs may report on a node that was uncordoned before it. A pod that stays longer than this is on a
# host that is down, where nothing reports.
"$kubectl" -n "$namespace" wait --for=delete pod -l app.kubernetes.io/component=agent --timeout=1m || true
newline='
'
before=
since=$(date +%s)
while :; do
	nodes=$(left)
	[ -n "$nodes" ] || break
	nodes=$(printf '%s\n' "$nodes" | sort -u)
	printf '%s\n' "$nodes" | while IFS= read -r line; do
		case $newline$before$newline in
		*"$newline$line$newline"*) ;;
		*) printf 'waiting for %s\n' "$line" ;;
		esac
	done
	before=$nodes
	if [ $(($(date +%s) - since)) -ge $((minutes * 60)) ]; then
		names=$(printf '%s\n' "$nodes" | cut -d ' ' -f 1 | tr '\n' ' ')
		echo "undeploy: not uncordoned yet: $names
  'kubectl bottlerocket plan' says why; 'kubectl bottlerocket clean ${names% } --force=controller' takes back what
  their own records say, or says which word more it needs for that. This goes on as soon as they are clean." >&2
		printf '%s\n' "$nodes" | unlocking >&2
		since=$(date +%s)
	fi
	sleep 2
	# A node that joins meanwhile may bring the label with it.
	unlabel
done
# The runner keeps pods of plans by a finalizer, and is deleted before it would let go of the last.
pods=$("$kubectl" -n bottlerocket-plans get pods -o name)
for pod in $pods; do
	"$kubectl" -n bottlerocket-plans patch "$pod" --type=merge -p '{"metadata":{"finalizers":null}}'
done
if [ -n "$remove" ]; then
	sh -c "$remove"
else
	# What has this label is needed when components/plans/plans.yaml is applied again: it says why.
	"$kubectl" delete --ignore-not-found -l '!bottlerocket.aws/keep' -f update-operator.yaml -f components/force-drain/force-drain.yaml -f components/grace-period/grace-period.yaml -f components/plans/plans.yaml
fi
nodes=$(remembered)
# shellcheck disable=SC2086 # names of nodes, each a word
[ -z "$nodes" ] || "$kubectl" annotate node $nodes bottlerocket.aws/auto-labelled- >/dev/null
nodes=$(tainted)
[ -z "$nodes" ] || echo "undeploy: nothing takes the taint bottlerocket.aws/fresh off any more. Have no new nodes register with it, and then:
  kubectl taint node $(echo "$nodes" | tr '\n' ' ' | sed 's/ $//') bottlerocket.aws/fresh:NoSchedule-"
