// Package authorizer is the proxy: the only door to the API server for agents, which have no Kubernetes
// permission of their own. A bearer token becomes a node's identity, a rule decides, and what is allowed
// goes on to the API server with the proxy's own account.
//
//	identity.go  who: token -> TokenReview -> Identity; what a token tells by itself (token.go, keys.go), what is
//	             remembered (remember.go), and what guards the reviews (gate.go)
//	request.go   what: path, method, query and Accept of a request, by a list of what is allowed
//	patch.go     what: the one form of patch, read strictly
//	rule.go      whether: Judge, a function of values alone
//	handler.go   carrying out: gets, lists and patches; watch.go: watches; upstream.go: the API server
//	limit.go     how much: requests of one agent; connection.go: connections, of agents and of strangers
//	serve.go     serving: TLS, sizes, times, the end; certificate/: where the certificate comes from
//
// It imports client-go, the pure packages, pkg/kube and telemetry, and no loop. It promises S4: an agent
// can write only its own Node's report, only as an answer to the intent that stands there, and only from
// what it saw there. The Node is read live for that, and the write carries the resourceVersion that was
// judged, so nothing changes in between. What goes on to the API server is made anew from what was
// judged: no header, no query and no byte of a body is passed through. The proxy never retries on an
// agent's behalf. A token that isn't good any more opens nothing 20 s later, and ends what it opened
// within a minute; the same is so of a Node that is gone.
//
// Nothing that strangers do, who have no good token, keeps agents out: what they may hold and have asked is bounded
// apart from what agents need. A token's own claims and its signature are no proof, only a reason to refuse early, or
// to review it apart from those that anybody can make up.
//
// It speaks the Kubernetes API (paths, Status errors, watches with WatchList), so that agents use
// client-go against it unchanged; it answers with metadata only. Token reviews go through client-go: the
// machinery of k8s.io/apiserver would add its whole weight for a cache of some lines.
//
// What its account needs, and no more:
//
//   - tokenreviews (authentication.k8s.io): create
//   - nodes: get, list, watch, patch (WatchList needs list beside watch)
//   - /openid/v1/jwks: get, which every service account may by default
//   - the Secret update-operator-proxy-tls and the ConfigMap update-operator-proxy-ca in its own
//     namespace: get, update. Both are shipped without data: `create` can't be limited to a name.
package authorizer
