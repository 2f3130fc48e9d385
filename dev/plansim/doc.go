// Package plansim has tests alone: what plans nodes and what runs their plans, which never import each other, against
// machines that reboot, crash and lie, in one process without a cluster.
package plansim
