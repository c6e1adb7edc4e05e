package client

import "github.com/netloop/netloop/internal/netvar"

// reception tells what the server has held back from what was lost on the way. Packets are
// numbered without gaps, so a number that is missing was sent and lost, and a snapshot that was due
// and has no number was never sent.
type reception struct {
	every uint64 // ticks between two snapshots
	tick  uint64 // of the newest snapshot of which anything has arrived
	next  uint64 // number after its last packet
	open  uint64 // packets of it that are on their way
	came  uint64 // packets that have arrived, used or not
	held  uint64 // snapshots held back
	past  uint64 // packets lost on the connections before
	gap   uint64 // the tick of the first packet after those that were lost last
	rough uint64 // how often something was missing, or held back
}

// restart begins with another connection, whose packets are numbered anew.
func (r *reception) restart(sendEvery uint32) {
	*r = reception{held: r.held, past: r.lost(), rough: r.rough}
	r.period(sendEvery)
}

// period takes the ticks between two snapshots, which the server has said.
func (r *reception) period(sendEvery uint32) { r.every = max(uint64(sendEvery), 1) }

// packet takes one that was read.
func (r *reception) packet(a *netvar.Applied) {
	r.came++
	if a.Tick == r.tick {
		r.open -= min(r.open, 1)
	}
	if a.Tick <= r.tick {
		return
	}
	first := a.Packet - min(uint64(a.Index), a.Packet)
	if r.tick == 0 || r.open > 0 || first > r.next {
		r.gap = a.Tick
		r.rough++
	}
	if r.tick > 0 {
		due := a.Tick/r.every - r.tick/r.every
		lost := first - min(first, r.next) // Packets, each of which may have been a snapshot.
		if missed := due - min(due, lost+1); missed > 0 {
			r.held += missed
			r.rough++
		}
	}
	r.tick, r.next, r.open = a.Tick, first+uint64(a.Count), uint64(a.Count)-1
}

// lost is how many packets were sent and have not arrived, but for those of the newest snapshot.
func (r *reception) lost() uint64 { return r.past + r.next - min(r.next, r.came+r.open+1) }

// gapless reports whether nothing has been lost but what the server knew of when it had the
// acknowledgements of a tick: what it makes then has what was lost.
func (r *reception) gapless(acknowledged uint64) bool { return acknowledged >= r.gap && r.tick > 0 }
