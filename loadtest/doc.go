// Package loadtest plays a game with many bots at once, as real clients over the
// real network, and measures what a player would notice.
//
//	func main() { loadtest.Main(bot.New()) }
//
// is the whole program of a load client: [Main] brings the command line, the
// phases, the figures and the exit status; the game brings a [Bot].
//
// # The flow
//
//	ramp        clients connect, evenly over --ramp, --per-socket of them to a UDP socket
//	warm-up     they play, nothing is counted
//	measure     they play, everything is counted; /ticks of the server's admin listener is read
//	            before and after
//	verify      every client that reads its state compares a digest of it with the server's
//	goodbye     they leave
//
// With --verify some clients alone read what they are sent, and the others acknowledge it, send
// what their bot sends, and count: one of them takes the generator half of the work, so that more
// of them fit. Ages, and what players feel, are then of those who read.
//
// A few worker goroutines own the clients. Each runs the frames of its own, every
// client once per frame period, their phases spread evenly over it, and each counts
// into histograms of its own that are added up at the end: a frame takes no lock and
// makes no garbage but what the game makes. Timers of the runtime let frames begin
// together that are due within a millisecond; with --exact-frames each begins at its own
// time, as those of players do, and the server is woken as often as by players.
//
//	dial goroutines ──▶ worker: wait for the next frame ──▶ Client.Step ──▶ recorder ──▶ Result
//	                            (snapshots and answers come in inside Step)
//
// The load is open: bots and calls keep to their schedule whether the server answers
// or not, and what a slow server or a slow generator delays counts from when it was
// meant to happen. A generator that cannot keep up says so in [Result] Saturated.
package loadtest
