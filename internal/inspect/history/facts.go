package history

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/recording"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/transport"
)

// arrivals counts the facts that reached a room from outside before a tick, by kind.
type arrivals struct {
	joins, leaves  uint16 // of seats
	drops, resumes uint16 // of connections
	messages       uint32 // of clients
	inputs         uint32 // packets of inputs
	posts, results uint16
	dropped        uint16 // ticks dropped before it
}

// countOf counts the facts of a record. Joins and leaves are not known from a record alone: see
// lanes.observe.
func countOf(t *recording.Tick) (n arrivals) {
	n.posts, n.results, n.dropped = clip(len(t.Posts)), clip(len(t.Results)), clip(t.Input.Dropped)
	for i := range t.Arrivals {
		switch a := &t.Arrivals[i]; a.Kind {
		case transport.Gone:
			n.drops++
		case transport.MessageArrived:
			n.messages++
		case transport.Inputs:
			n.inputs++
		case transport.Joined:
			n.resumes++
		}
	}
	return n
}

// clip converts a count to 16 bits; a larger count becomes the largest value.
func clip[N int | uint64](n N) uint16 { return uint16(min(n, 1<<16-1)) }

// count is the number of messages of one method, or of packets of inputs, from one client.
type count struct {
	client uint64
	method uint32 // 0: inputs
	n      uint32
}

const (
	// bucket is the number of ticks that share counts of arrivals, by client and method, in
	// memory.
	bucket = 64
	// maxCounts bounds the clients and methods of a bucket; further ones are counted by tick
	// alone. It is twice the clients of a large room.
	maxCounts = 2048
	// maxLanes bounds the lanes of a recording; further clients get none.
	maxLanes = 1 << 16
)

// lane is a client of the recording. The page draws its arrivals as one row of the timeline.
type lane struct {
	id      uint64
	subject string // the player, or "" without one
	from    uint64 // the tick of its join
	to      atomic.Uint64
}

// lanes are the arrivals by client. One goroutine appends; any goroutine may read.
type lanes struct {
	clients *list[*lane]
	buckets *list[[]count]

	// Only the appending goroutine uses these.
	present presence
	ticks   int // in the bucket that is being filled
	running []count
}

// presence are the clients of a room, in the order of ids.
type presence []*lane

func newLanes() *lanes {
	return &lanes{clients: newList[*lane](maxLanes), buckets: newList[[]count](maxTicks / bucket)}
}

// maxSubject bounds the subject of a lane, in bytes: a game may set any text.
const maxSubject = 64

// observe adds the tick that the room has just run, and returns its counts.
func (l *lanes) observe(r *room.Room, t *recording.Tick) arrivals {
	n := countOf(t)
	l.present.compare(r.Clients(), t.Input.Tick, &n, l.add)
	l.count(t)
	return n
}

// add adds a client that has joined.
func (l *lanes) add(joined *lane) {
	if !l.clients.full() {
		l.clients.add(joined)
	}
}

// count adds the messages and inputs of a tick.
func (l *lanes) count(t *recording.Tick) {
	l.running = appendCounts(l.running, t)
	if l.ticks++; l.ticks == bucket {
		l.flush()
	}
}

// flush publishes the bucket that is being filled, and begins the next one.
func (l *lanes) flush() {
	if l.ticks > 0 && !l.buckets.full() {
		l.buckets.add(slices.Clone(l.running))
	}
	l.ticks, l.running = 0, l.running[:0]
}

// compare finds the clients that have joined and left since the last call, and counts them. Both
// lists are in the order of ids; the spectator feed, which is no client, is the last of now.
func (p *presence) compare(now []*room.Client, tick uint64, n *arrivals, add func(*lane)) {
	if last := len(now) - 1; last >= 0 && now[last].IsFeed() {
		now = now[:last]
	}
	if slices.EqualFunc(now, *p, func(c *room.Client, l *lane) bool { return c.ID() == l.id }) {
		return
	}
	var present []*lane
	was := *p
	for _, c := range now {
		for len(was) > 0 && was[0].id < c.ID() {
			was[0].to.Store(tick)
			was = was[1:]
			n.leaves++
		}
		if len(was) > 0 && was[0].id == c.ID() {
			present, was = append(present, was[0]), was[1:]
			continue
		}
		joined := &lane{id: c.ID(), subject: codec.Clip(c.Join().Subject, maxSubject), from: tick}
		present = append(present, joined)
		n.joins++
		n.resumes -= min(n.resumes, 1) // Its arrival was counted as one of a known client.
		add(joined)
	}
	for _, left := range was {
		left.to.Store(tick)
		n.leaves++
	}
	*p = present
}

// appendCounts adds the messages and inputs of a record to counts.
func appendCounts(dst []count, t *recording.Tick) []count {
	for i := range t.Arrivals {
		a := &t.Arrivals[i]
		method := a.Message.Method
		switch a.Kind {
		case transport.MessageArrived:
		case transport.Inputs:
			method = 0
		default:
			continue
		}
		dst = addCount(dst, count{a.Client, method, 1})
	}
	return dst
}

// addCount adds a count to counts, in the order of clients and methods.
func addCount(dst []count, c count) []count {
	i, found := slices.BinarySearchFunc(dst, c, func(a, b count) int {
		return cmp.Or(cmp.Compare(a.client, b.client), cmp.Compare(a.method, b.method))
	})
	switch {
	case found:
		dst[i].n += c.n
	case len(dst) < maxCounts:
		dst = slices.Insert(dst, i, c)
	}
	return dst
}
