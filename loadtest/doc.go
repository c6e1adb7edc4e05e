// Package loadtest plays a game with many bots at once, as real clients over the real network, and
// measures the effects that a player would notice.
//
//	func main() { loadtest.Main(bot.New()) }
//
// is the whole program of a load client: [Main] brings the command line, the phases, the figures
// and the exit status; the game supplies a [Bot].
//
// # The flow
//
//	ramp        clients connect, evenly over --ramp, --per-socket of them to a UDP socket
//	warm-up     they play without measurement
//	measure     they play and are measured; the server's admin listener is read before and
//	            after, and once a second for the series; --schedule, --churn and --storm change
//	            the clients, by a plan that the seed fixes
//	verify      every client that reads its state compares a digest of it with the server's
//	goodbye     they leave
//
// With --verify only some clients read the received state; the others acknowledge it, send their
// bot's messages, and count: such a client takes half of the generator's work, so that more of
// them fit. Only the reading clients then report ages and the figures of [Feel].
//
// A few worker goroutines own the clients. A worker runs a frame of each of its clients once per
// frame period, evenly spread over the period. It counts into its own histograms, which are added
// up at the end: a frame takes no lock and makes no garbage except the game's. Timers of the
// runtime start all frames together that are due within a millisecond; with --exact-frames each
// begins at its own time, like the frames of players, and wakes the server as often as players do.
//
//	dial goroutines ──▶ worker: wait for the next frame ──▶ Client.Step ──▶ recorder ──▶ Result
//	                            (snapshots and answers come in inside Step)
//
// The load is open, but for [Ask]: bots and calls keep their schedule whether the server answers or
// not, and a call or frame that a slow server or generator delays counts from its scheduled time. A
// generator that cannot keep up sets [Result] Saturated.
package loadtest
