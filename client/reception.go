package client

import "github.com/netloop/netloop/internal/netvar"

// reception distinguishes snapshots that the server held back from packets lost in transit. Packets
// are numbered without gaps, so a missing number was sent and lost, and a due snapshot without a
// number was never sent.
type reception struct {
	every uint64 // ticks between two snapshots
	tick  uint64 // of the newest snapshot with a packet that arrived
	next  uint64 // number after its last packet
	open  uint64 // packets of it that are in flight
	came  uint64 // packets that have arrived, used or not
	held  uint64 // snapshots held back
	past  uint64 // packets lost on earlier connections
	gap   uint64 // the tick of the first packet after the last lost packets
	rough uint64 // how often packets were lost, or snapshots held back
}

// restart resets it for another connection, which numbers its packets anew.
func (r *reception) restart(sendEvery uint32) {
	*r = reception{held: r.held, past: r.lost(), rough: r.rough}
	r.period(sendEvery)
}

// period sets the ticks between two snapshots, as reported by the server.
func (r *reception) period(sendEvery uint32) { r.every = max(uint64(sendEvery), 1) }

// packet counts a packet that was read.
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

// lost returns how many packets were sent and have not arrived, except those of the newest
// snapshot.
func (r *reception) lost() uint64 { return r.past + r.next - min(r.next, r.came+r.open+1) }

// gapless reports whether all losses were known to the server when it had the acknowledgements of a
// tick: snapshots that it makes from then on include the lost changes.
func (r *reception) gapless(acknowledged uint64) bool { return acknowledged >= r.gap && r.tick > 0 }
