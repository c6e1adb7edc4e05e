package netvar

import "slices"

// Plans are served in turns, which bounds the records per tick that all catching-up clients receive
// together. A turn is measured in records, never in time, and turns are granted in the order of
// requests. Between its turns a client receives only changes of the objects that it has.
//
// There are two lanes. Joining clients use the first, which is wide: a crowd that joins at once
// must be able to play soon. The slow lane is for clients that had the full state and request it
// again, and for clients that the caller assigns to it by Slow; any number of them cost the others
// little.

// firstTurn is the expected number of records of a client's first turn. A later turn is expected to
// take as many records as the one before, and at least leastTurn. rankShare is the number of ranked
// objects that count as one record: ranking takes so much less time.
const (
	firstTurn = 2048
	leastTurn = 64
	slowTurn  = 512 // the most records of a turn in the slow lane
	rankShare = 4
)

// The lanes, and the average number of full records per tick that the plans of each may send.
const (
	wideLane = iota
	slowLane

	wideRecords = 24 << 10
	slowRecords = 1 << 10
)

// catchUpLane is the state of one lane.
type catchUpLane struct {
	most    uint64  // records per tick
	queue   []*Peer // waiting clients, in the order of requests
	tick    uint64
	granted uint64 // expected records of the turns granted in that tick
	served  uint64 // records that were sent in it
}

// newLanes returns the lanes of a world.
func newLanes() [2]catchUpLane {
	return [2]catchUpLane{{most: wideRecords}, {most: slowRecords}}
}

// turns is the state of a client's turns.
type turns struct {
	lane    uint8
	waits   bool   // the client is in the queue
	granted bool   // the plan is served with the next snapshot
	took    uint64 // expected number of records
}

// Slow moves the client to the slow lane until it has caught up.
func (p *Peer) Slow() {
	p.giveUpTurn()
	p.turns = turns{lane: slowLane}
}

// begin starts a tick: it grants turns to the clients that have waited longest.
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

// grant grants a turn if the tick has room for it, or if it is the first of the tick.
func (l *catchUpLane) grant(t *turns) bool {
	if l.granted > 0 && l.granted+t.took > l.most {
		return false
	}
	t.granted = true
	l.granted += t.took
	return true
}

// mayLoad reports whether the client's plan is served now. A client keeps its turn until its next
// snapshot, so several turns may coincide in one tick. Their sum is limited to twice the lane's
// rate, except for the first.
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

// firstTurn returns the expected number of records of the first turn, including the cost of
// ranking.
func (p *Peer) firstTurn() uint64 {
	records := uint64(p.blank.count() / rankShare)
	if p.turns.lane == slowLane {
		return records + slowTurn
	}
	return records + firstTurn
}

// wait appends the client to the queue.
func (p *Peer) wait() {
	l := &p.w.lanes[p.turns.lane]
	l.queue = append(l.queue, p)
	p.turns.waits = true
}

// giveUpTurn removes the client from the queue.
func (p *Peer) giveUpTurn() {
	l := &p.w.lanes[p.turns.lane]
	if i := slices.Index(l.queue, p); i >= 0 {
		l.queue = slices.Delete(l.queue, i, i+1)
	}
	p.turns.waits, p.turns.granted = false, false
}

// tookTurn ends a turn that took so many records. The client requests another one with its next
// snapshot, behind all waiting clients.
func (p *Peer) tookTurn(records uint64) {
	l, t := &p.w.lanes[p.turns.lane], &p.turns
	l.served += records
	t.granted, t.took = false, max(records, leastTurn)
}
