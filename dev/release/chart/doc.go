// Package chart makes what users install of one source, the Helm chart in charts/bottlerocket-update-operator: the
// manifest update-operator.yaml, the components of the kustomization beside it, and the chart's own schema and README.
//
// All of that is checked in, so that no user needs a program to read it; TestGenerated compares, and writes it with
// -update (`make manifest`). The other tests install, upgrade and remove all forms on a real API server.
//
// It imports Helm's engine, as users' Helm has it, and of the repository dev/controlplane for the place of the checkout.
package chart
