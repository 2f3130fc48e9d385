// Package authorizer is the proxy: the only door to the API server for agents, which have no Kubernetes
// permission of their own. A bearer token becomes a node's identity, a rule decides, and what is allowed
// goes on to the API server with the proxy's own account.
//
//	identity.go  who: token -> TokenReview -> Identity, and what guards the reviews (limit.go, remember.go)
//	request.go   what: path, method, query and Accept of a request, by a list of what is allowed
//	patch.go     what: the one form of patch, read strictly
//	rule.go      whether: Judge, a function of values alone
//	handler.go   carrying out: gets, lists and patches; watch.go: watches; upstream.go: the API server
//	serve.go     serving: TLS, limits, the end; certificate/: where the certificate comes from
//
// It imports client-go, the pure packages, pkg/kube and telemetry, and no loop. It promises S4: an agent
// can write only its own Node's report, only as an answer to the intent that stands there, and only from
// what it saw there. The Node is read live for that, and the write carries the resourceVersion that was
// judged, so nothing changes in between. What goes on to the API server is made anew from what was
// judged: no header, no query and no byte of a body is passed through. The proxy never retries on an
// agent's behalf. A token that isn't good any more opens nothing 20 s later, and ends what it opened
// within a minute.
//
// It speaks the Kubernetes API (paths, Status errors, watches with WatchList), so that agents use
// client-go against it unchanged; it answers with metadata only. Token reviews go through client-go: the
// machinery of k8s.io/apiserver would add its whole weight for a cache of some lines.
//
// What its account needs, and no more:
//
//   - tokenreviews (authentication.k8s.io): create
//   - nodes: get, list, watch, patch (WatchList needs list beside watch)
//   - the Secret update-operator-proxy-tls and the ConfigMap update-operator-proxy-ca in its own
//     namespace: get, update. Both are shipped without data: `create` can't be limited to a name.
package authorizer
