// Package alert asks a Prometheus which alerts stand.
//
// It speaks two requests of Prometheus' HTTP API and imports fleet alone of this project. What an alert
// means for a start, policy decides. It promises that an answer which isn't whole is an error: nobody
// takes it for a cluster without alerts.
package alert
