// Package manifest reads update-operator.yaml, the file that users apply, into typed objects.
//
// It serves the tests, the demo and the local cluster, which run the operator's commands with the
// service accounts and arguments that stand there. Its own tests hold what the manifest promises, that the pages under
// docs say what the code says and that their links lead somewhere, that the examples under docs/plans do what they say,
// and that what lets others look at the operator (monitoring/, dev/dashboard.yaml) fits the manifest and its metrics.
//
// It imports client-go's scheme and the Kubernetes API types; of this repository dev/controlplane alone,
// for the place of the checkout, and in tests dev/prometheus and the packages whose flags and tables are compared.
package manifest
