// Package alert asks a Prometheus which alerts are pending or firing.
//
// It sends two kinds of requests of Prometheus' HTTP API; the planner decides what an alert means for a start. It
// imports fleet and plain alone of this project. It promises that an incomplete answer is an error, so that it is never
// taken for a cluster without alerts.
package alert
