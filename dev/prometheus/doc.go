// Package prometheus runs a real Prometheus, built from its Go module, as a child of this process: on loopback, with its
// data in a folder of the caller's. It tells it what to scrape, which may change while it runs, and asks it.
//
// Prometheus ends with this process, however that ends (see dev/process). The folder programs holds no code, but the
// version that it and promtool are built from; dev/controlplane builds them into the user's cache folder.
//
// It imports the standard library, pkg/errors, and dev/controlplane, dev/port and dev/process of this repository.
package prometheus
