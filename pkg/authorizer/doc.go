// Package authorizer is the proxy: the only door to the API server for agents, which have no Kubernetes
// permission of their own. A bearer token becomes a node's identity, a rule decides, and what is allowed
// goes on to the API server with the proxy's own account.
//
// It imports client-go, the pure packages and telemetry, and no loop. It promises S4: an agent can write
// only its own Node's report, only as an answer to the intent that stands there, and only from what it
// saw there. The rule is a function of values alone (Judge); the Node is read live for it, and the write
// carries the resourceVersion that was judged, so nothing changes in between. The proxy never retries on
// an agent's behalf.
//
// It speaks the Kubernetes API (paths, Status errors, watches), so that agents use client-go against it.
// Token reviews go through client-go: the machinery of k8s.io/apiserver would add its whole weight for a
// cache of some lines.
//
// What its account needs: create tokenreviews; get, list, watch and patch nodes; get and update the
// Secret and the ConfigMap of its certificates by name in its own namespace.
package authorizer
