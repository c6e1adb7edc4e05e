package netvar

import "slices"

// Plans are served by turns, so that what clients catch up with in a tick is bounded for all of
// them together. A turn is counted in records, never in time, and those who have asked first have
// theirs first. Between its turns a client gets what has changed of what it has.
//
// There are two lanes. Whoever joins is in the first, which is wide: a crowd that comes at once
// shall play soon. Who has had everything already and asks for it again is in the second, with
// those of whom the caller says so, and however many they are, they cost the others little.

// firstTurn is how many records a client's first turn is expected to take, and leastTurn how many
// each of the later ones at least, which are expected to take what the one before has taken.
// rankShare is how many objects in a new plan count as one record: each takes so much less time.
const (
	firstTurn = 2048
	leastTurn = 64
	slowTurn  = 512 // records that a turn in the slow lane takes at most
	rankShare = 4
)

// The lanes, and how many full records leave by the plans of each in a tick, on average.
const (
	wideLane = iota
	slowLane

	wideRecords = 24 << 10
	slowRecords = 1 << 10
)

// catchUpLane is what a world knows of one.
type catchUpLane struct {
	most    uint64  // records of a tick
	queue   []*Peer // who waits, in the order of asking
	tick    uint64
	granted uint64 // records of that tick's turns, as they are expected
	served  uint64 // and as they were taken
}

// newLanes returns the lanes of a world.
func newLanes() [2]catchUpLane {
	return [2]catchUpLane{{most: wideRecords}, {most: slowRecords}}
}

// turns say when a client's plan is served.
type turns struct {
	lane    uint8
	waits   bool   // the client is in the queue
	granted bool   // its turn has come, for its next snapshot
	took    uint64 // records that it is expected to take
}

// Slow lets the client catch up in the slow lane, until it has everything.
func (p *Peer) Slow() {
	p.giveUpTurn()
	p.turns = turns{lane: slowLane}
}

// begin lets those go in a tick who have waited for longest.
func (l *catchUpLane) begin(tick uint64) {
	if l.tick == tick {
		return
	}
	l.tick, l.granted, l.served = tick, 0, 0
	n := 0
	for ; n < len(l.queue) && l.grant(&l.queue[n].turns); n++ {
		l.queue[n].turns.waits = false
	}
	l.queue = slices.Delete(l.queue, 0, n)
}

// grant gives a turn if the tick has room for it, and one in any case.
func (l *catchUpLane) grant(t *turns) bool {
	if l.granted > 0 && l.granted+t.took > l.most {
		return false
	}
	t.granted = true
	l.granted += t.took
	return true
}

// mayLoad reports whether the turn of the client's plan has come. Who gets no snapshot keeps its
// turn, so several may fall on one tick: there is a limit to that as well.
func (c *cutter) mayLoad() bool {
	p, t := c.p, &c.p.turns
	l := &p.w.lanes[t.lane]
	l.begin(c.header.Tick)
	if !t.granted && !t.waits {
		if t.took == 0 {
			t.took = p.firstTurn()
		}
		if len(l.queue) > 0 || !l.grant(t) {
			p.wait()
		}
	}
	return t.granted && (l.served == 0 || l.served+t.took <= 2*l.most)
}

// firstTurn is how many records the first turn is expected to take, with the plan that is made
// then.
func (p *Peer) firstTurn() uint64 {
	records := uint64(p.blank.count() / rankShare)
	if p.turns.lane == slowLane {
		return records + slowTurn
	}
	return records + firstTurn
}

// wait puts the client at the end of the queue.
func (p *Peer) wait() {
	l := &p.w.lanes[p.turns.lane]
	l.queue = append(l.queue, p)
	p.turns.waits = true
}

// giveUpTurn takes the client out of the queue.
func (p *Peer) giveUpTurn() {
	l := &p.w.lanes[p.turns.lane]
	if i := slices.Index(l.queue, p); i >= 0 {
		l.queue = slices.Delete(l.queue, i, i+1)
	}
	p.turns.waits, p.turns.granted = false, false
}

// tookTurn notes that a turn took so many records. The client asks for another one with its next
// snapshot, and then is behind all who wait.
func (p *Peer) tookTurn(records uint64) {
	l, t := &p.w.lanes[p.turns.lane], &p.turns
	l.served += records
	t.granted, t.took = false, max(records, leastTurn)
}
