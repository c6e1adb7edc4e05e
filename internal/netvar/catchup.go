package netvar

import "slices"

// A client that lacks many objects receives them by a plan (plan.go). Plans are served in turns,
// which bounds the total number of records per tick for all catching-up clients. A turn is measured
// in records, never in time, and turns are granted in the order of requests. Between its turns a
// client receives only changes of the objects that it has.
//
// There are two queues. Joining clients use the first queue, which has a high rate, because many
// clients that join at once must be able to play soon. The slow queue is for clients that had the
// full state and request it again, and for clients that the caller assigns to it by Slow. Its rate
// is so low that any number of clients in it hardly affects other clients.

// firstTurn is the expected number of records of a client's first turn. A later turn is expected to
// take as many records as the previous turn, and at least minTurn. rankShare is the number of
// ranked objects that count as one record, because ranking an object takes less time than encoding
// a record.
const (
	firstTurn = 2048
	minTurn   = 64
	slowTurn  = 512 // the most records of a turn in the slow queue
	rankShare = 4
)

// The queues, and the average number of full records per tick that the plans of each may send.
const (
	joinQueue = iota
	slowQueue

	joinRecords = 24 << 10
	slowRecords = 1 << 10
)

// catchUpQueue is a queue of clients that wait for a turn of their plan, with the records of the
// turns in the current tick.
type catchUpQueue struct {
	most    uint64  // records per tick
	waiting []*Peer // in the order of requests
	tick    uint64
	granted uint64 // expected records of the turns that were granted in the tick
	served  uint64 // records that were sent in the tick
}

// newCatchUp returns the queues of a world.
func newCatchUp() [2]catchUpQueue {
	return [2]catchUpQueue{{most: joinRecords}, {most: slowRecords}}
}

// turns is the state of one client in a catchUpQueue.
type turns struct {
	queue   uint8
	waits   bool   // the client is in the queue
	granted bool   // the plan is served with the next snapshot
	took    uint64 // expected number of records
}

// Slow moves the client to the slow queue until it has caught up.
func (p *Peer) Slow() {
	p.giveUpTurn()
	p.turns = turns{queue: slowQueue}
}

// begin starts a tick: it grants turns to the clients that have waited longest.
func (l *catchUpQueue) begin(tick uint64) {
	if l.tick == tick {
		return
	}
	l.tick, l.granted, l.served = tick, 0, 0
	n := 0
	for ; n < len(l.waiting) && l.grant(&l.waiting[n].turns); n++ {
		l.waiting[n].turns.waits = false
	}
	l.waiting = slices.Delete(l.waiting, 0, n)
}

// grant grants a turn if it is the first of the tick, or if its expected records are within the
// queue's records per tick.
func (l *catchUpQueue) grant(t *turns) bool {
	if l.granted > 0 && l.granted+t.took > l.most {
		return false
	}
	t.granted = true
	l.granted += t.took
	return true
}

// mayLoad reports whether this snapshot may contain records of the client's plan. If the client has
// no turn, mayLoad requests one. A granted turn is valid until the client's next snapshot, so turns
// of several ticks may be used in the same tick. After the first of these, a turn is used only if
// the sum of their records remains within twice the queue's records per tick.
func (c *cutter) mayLoad() bool {
	p, t := c.p, &c.p.turns
	l := &p.w.catchUp[t.queue]
	l.begin(c.header.Tick)
	if !t.granted && !t.waits {
		if t.took == 0 {
			t.took = p.firstTurn()
		}
		if len(l.waiting) > 0 || !l.grant(t) {
			p.wait()
		}
	}
	return t.granted && (l.served == 0 || l.served+t.took <= 2*l.most)
}

// firstTurn returns the expected number of records of the first turn, including the cost of
// ranking.
func (p *Peer) firstTurn() uint64 {
	records := uint64(p.neverSent.Count() / rankShare)
	if p.turns.queue == slowQueue {
		return records + slowTurn
	}
	return records + firstTurn
}

// wait appends the client to the queue.
func (p *Peer) wait() {
	l := &p.w.catchUp[p.turns.queue]
	l.waiting = append(l.waiting, p)
	p.turns.waits = true
}

// giveUpTurn removes the client from the queue and drops a granted turn.
func (p *Peer) giveUpTurn() {
	l := &p.w.catchUp[p.turns.queue]
	if i := slices.Index(l.waiting, p); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
	}
	p.turns.waits, p.turns.granted = false, false
}

// tookTurn ends a turn that took the given number of records. With its next snapshot the client
// requests another turn, after all waiting clients.
func (p *Peer) tookTurn(records uint64) {
	l, t := &p.w.catchUp[p.turns.queue], &p.turns
	l.served += records
	t.granted, t.took = false, max(records, minTurn)
}
