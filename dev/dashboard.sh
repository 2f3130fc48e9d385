#!/bin/sh
# Applies dev/dashboard.yaml to the cluster of the current context, with the rules and the dashboards of monitoring/;
# with the argument "prometheus" all but Grafana. It waits for nothing, and may be run again.
set -eu

kubectl=${KUBECTL:-kubectl}
namespace=bottlerocket-monitoring
# Objects of Grafana have this label.
grafana=app.kubernetes.io/name=grafana

configmap() {
	name=$1
	shift
	echo ---
	"$kubectl" -n "$namespace" create configmap "$name" --dry-run=client -o yaml "$@"
}

render() {
	cat dev/dashboard.yaml
	configmap prometheus-rules --from-file=monitoring/rules.yaml
	[ "$1" = prometheus ] || configmap grafana-dashboards --from-file=monitoring/dashboard-fleet.json --from-file=monitoring/dashboard-node.json
}

what=${1:-all}
rendered=$(render "$what")
if [ "$what" = prometheus ]; then
	printf '%s\n' "$rendered" | "$kubectl" apply -l "$(echo "$grafana" | sed 's/=/!=/')" -f -
else
	printf '%s\n' "$rendered" | "$kubectl" apply -f -
fi

cat <<END

It starts in the namespace $namespace. It is not for production: it has no login, and what it has
recorded goes with its pod. Follow it with

  kubectl -n $namespace get pods --watch

Then let Prometheus be on http://localhost:9090:

  kubectl -n $namespace port-forward service/prometheus 9090

What to type there:

  bottlerocket_update_controller_nodes             how many nodes are in each phase
  bottlerocket_update_controller_nodes_version     how many nodes run each version
  bottlerocket_update_controller_nodes_target      how many nodes are to go to each version
  bottlerocket_update_controller_nodes_waiting     how many nodes wait, by reason
  bottlerocket_update_controller_failures_total    attempts that failed
  brupop_hosts_state, brupop_hosts_version         the same, under the names of the Rust operator
  {job="bottlerocket-update-operator"}             everything

Its page Alerts shows the rules.
END
[ "$what" = prometheus ] || cat <<END

And let Grafana be on http://localhost:3000, with the dashboards:

  kubectl -n $namespace port-forward service/grafana 3000
END
cat <<END

To remove it: kubectl delete --ignore-not-found -f dev/dashboard.yaml
END
