// Package agent is the loop that makes one node's intent true on its host and reports what it finds.
//
// It is for the commands. It talks to two ports only: Node, its own node as the proxy shows it, and
// platform.Host. It may import the pure packages, pkg/platform, pkg/telemetry and client-go's metadata
// client; never client-go's typed clients or kubectl, whose memory every host would pay for, and never
// the controller.
//
// What it promises:
//
//   - What to do next is next.Decide's decision alone. Turn takes one and carries out one act; it starts
//     no goroutine and never waits, so a simulation can run it. Run adds the watch and the timers.
//   - It may die at any line. What it must not forget stands on the node or on the host; what it keeps
//     in memory only saves time.
//   - Before it touches the host for an intent, `busy` for that intent was accepted, in this process.
//   - It writes only what differs, with the resource version of what it decided from, and at rest it
//     asks for nothing but its watch and a rare live look.
//   - Trouble with the proxy or the host ends in waiting with growing pauses, never in an exit; the
//     one exception is ErrSocketReplaced.
package agent
