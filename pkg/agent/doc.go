// Package agent is the loop that carries out the intent of one node on its host, and reports what it finds.
//
// It is for the commands. It uses two ports only: Node, its own node as the proxy shows it, and platform.Host. It may
// import the pure packages, pkg/platform, pkg/telemetry and client-go's metadata client; never client-go's typed
// clients or kubectl, since every host would pay for their memory, and never the controller.
//
// It promises:
//
//   - The next step is next.Decide's decision alone. Turn takes one and carries it out; it starts no goroutine and
//     never waits, so a simulation can run it. Run adds the watch and the timers.
//   - It may die at any line. All state that matters is on the node or on the host; its memory only saves time.
//   - Before it changes the host for an intent, `busy` for that intent was accepted from this process.
//   - It writes only what differs, with the resource version of what it decided from; at rest it sends no request but
//     its watch and a rare live look.
//   - A failure of the proxy or the host leads to growing pauses, never to an exit. The one exception is
//     ErrSocketReplaced.
package agent
