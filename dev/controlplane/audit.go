package controlplane

// auditPolicy records which user did what to which object and how it was answered, for
// writes and reads alike, once per request: when it is answered, and for a
// watch also when it begins.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`
