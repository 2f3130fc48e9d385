// Package access is how the controller, the proxy and the runner reach the API server: by which account, at which pace,
// and whether admission policies keep that account from what isn't its own to write.
//
// It imports client-go, logging, metrics and marker, and nothing of policies and plans: the proxy is made of little
// more. It promises that what it asks to find a policy out is never stored.
package access
