package client

import "github.com/netloop/netloop/internal/netvar/replica"

// losses distinguishes snapshots that the server held back from packets lost in transit. Packets
// are numbered without gaps, so a missing number was sent and lost, and a due snapshot without a
// number was never sent.
type losses struct {
	every    uint64 // ticks between two snapshots
	tick     uint64 // tick of the newest snapshot of which a packet has arrived
	next     uint64 // packet number after its last packet
	inFlight uint64 // number of its missing packets
	received uint64 // number of received packets, used or not
	held     uint64 // number of snapshots that the server held back
	earlier  uint64 // packets lost on earlier connections
	gap      uint64 // the tick of the first packet after the last lost packets
	count    uint64 // number of times that packets were lost or snapshots were held back
}

// restart resets it for another connection, in which packet numbers start again.
func (l *losses) restart(sendEvery uint32) {
	*l = losses{held: l.held, earlier: l.lost(), count: l.count}
	l.setPeriod(sendEvery)
}

// setPeriod sets the ticks between two snapshots, as reported by the server.
func (l *losses) setPeriod(sendEvery uint32) { l.every = max(uint64(sendEvery), 1) }

// packet counts a packet that was read, and detects lost packets and held-back snapshots before it.
func (l *losses) packet(a *replica.Applied) {
	l.received++
	if a.Tick == l.tick {
		l.inFlight -= min(l.inFlight, 1)
	}
	if a.Tick <= l.tick {
		return
	}
	first := a.Packet - min(uint64(a.Index), a.Packet)
	if l.tick == 0 || l.inFlight > 0 || first > l.next {
		l.gap = a.Tick
		l.count++
	}
	if l.tick > 0 {
		due := a.Tick/l.every - l.tick/l.every
		lost := first - min(first, l.next) // Each lost packet may have been a snapshot.
		if missed := due - min(due, lost+1); missed > 0 {
			l.held += missed
			l.count++
		}
	}
	l.tick, l.next, l.inFlight = a.Tick, first+uint64(a.Count), uint64(a.Count)-1
}

// lost returns the number of packets that were sent and have not arrived, except packets of the
// newest snapshot.
func (l *losses) lost() uint64 { return l.earlier + l.next - min(l.next, l.received+l.inFlight+1) }

// gapless reports whether all losses were before the acknowledged tick: the server then knew of
// them, and its later snapshots include the lost changes.
func (l *losses) gapless(acknowledged uint64) bool { return acknowledged >= l.gap && l.tick > 0 }
