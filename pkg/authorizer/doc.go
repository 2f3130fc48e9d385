// Package authorizer is the proxy: the agents' only way to the API server, since they have no Kubernetes permission of
// their own. A TokenReview turns a bearer token into a node's identity, a rule decides, and the proxy sends what is
// allowed to the API server with its own account.
//
//	identity.go  authentication: token -> TokenReview -> Identity; early refusals (token.go, keys.go), remembered reviews
//	             (remember.go), and the rate of reviews (gate.go)
//	request.go   the allowed paths, methods, queries and Accept headers
//	patch.go     the one form of patch, read strictly
//	rule/        authorization: Judge, a pure function
//	handler.go   gets, lists and patches; watch.go: watches; upstream.go: the API server
//	limit.go     the rate of one agent's requests; connection.go: connections
//	serve.go     TLS, limits, timeouts and shutdown; certificate/: the serving certificate
//
// It imports client-go, marker, plain, connlimit, kube/access and telemetry: nothing of policies and plans, and no
// loop. It promises S4: an agent can write only its own Node's report, only as an answer to the Node's present intent,
// and only from what it saw there. The proxy reads the Node live for that, and its write carries the resourceVersion
// that it judged, so nothing changes in between. Each request to the API server is composed from what was judged: no
// header, no query and no byte of a body is passed through. The proxy never retries for an agent. A revoked token opens
// nothing 20 s later, and its watches end within a minute; the same holds for a Node that is gone.
//
// No client without a good token keeps agents out: its connections and token reviews have limits of their own. A
// token's claims and its signature are no proof; the proxy uses them only to refuse early, and to review tokens that
// the API server signed apart from made-up ones.
//
// It speaks the Kubernetes API (paths, Status errors, watches with WatchList), so that agents use client-go against it
// unchanged; it answers with metadata only. Token reviews go through client-go: k8s.io/apiserver would be a large
// dependency for a small cache.
//
// The permissions of its account, and no more:
//
//   - tokenreviews (authentication.k8s.io): create
//   - nodes: get, list, watch, patch (WatchList needs list beside watch)
//   - /openid/v1/jwks: get, which every service account may by default
//   - the Secret update-operator-proxy-tls and the ConfigMap update-operator-proxy-ca in its own
//     namespace: get, update. Both are shipped without data: `create` can't be limited to a name.
package authorizer
