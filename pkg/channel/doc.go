// Package channel asks the channels of plans which version they name.
//
// A channel is an address that redirects to one whose last path element is the version, as those of
// https://update.k3s.io do; or it is itself such an address. The Poller asks each of them every 15 minutes, and less
// often after an error or where the answer wants that. What an answer says and when the next one is due are pure
// functions; the Poller keeps the time.
//
// It is for the runner. It imports marker, plain and telemetry's version alone of this project. It promises that a
// channel is asked by HTTPS alone, that no redirect is followed, that no byte of a body is read, that neither cookies
// nor credentials are sent, that no address is asked twice at once, and that a version that was read stays known while
// the channel can't be read.
package channel
