package transport

import "time"

// mailbox holds the data queued for the peer. The connection's mutex guards it: the owner fills it
// in Flush, the driver's writers empty it.
type mailbox struct {
	unreliable messageQueue
	reliable   byteQueue
	moved      bool // reliable data was sent since the last flush

	packets    [][]byte // the snapshot's packets, borrowed from the owner's slot
	next       int      // index of the next packet to send
	lastInHand bool     // the last packet is appended, but send has not returned yet

	acks    [maxAckField]byte // an encoded field, ready to copy
	acksLen int
	acksDue bool // the next datagram carries the acknowledgements

	inputs []byte // client: the newest packet of inputs; empty once sent

	mispredicted uint64 // client: a report of mispredictions; 0 once sent

	status      InputStatus // server: status of the client's inputs
	statusDue   bool
	statusWaits int // number of flushes since statusDue without a datagram with room

	beat         bool // client: a flush sends a datagram, even an empty one
	requestDue   bool // client: a time request is wanted
	replyDue     bool // server: a time request is unanswered
	replyRequest time.Duration
	replyArrived time.Duration

	number uint64 // number of the last datagram
	sent   uint64 // bytes passed to the driver, of datagrams and the stream

	flushing bool // a flush has datagrams left to send
	flushAt  time.Duration
	choked   time.Duration // total time for which sends of the flush waited for the peer

	cause *Closed // reason for the end; nil before the end
	ended bool

	moving  bool   // the session's last frame is queued, and another session may follow
	follows *Next  // on a moving client: the next session
	ticket  string // ticket of the frame moved, on a server
	travels bool   // on a server: the client was told to move to another server
	greeted bool   // after the frame moved: the hello or the welcome has arrived
}

// due reports whether there is a datagram to send.
func (b *mailbox) due() bool {
	return b.next < len(b.packets) || b.beat || b.requestDue || b.replyDue || b.unreliable.len() > 0 ||
		len(b.inputs) > 0 || b.statusWaits >= maxStatusWaits
}

// byteQueue is a queue of bytes in one piece of memory.
type byteQueue struct {
	buf []byte
	off int
}

func (q *byteQueue) size() int { return len(q.buf) - q.off }

// reset empties the queue. It frees large memory.
func (q *byteQueue) reset() {
	if q.buf, q.off = q.buf[:0], 0; cap(q.buf) > keptQueue {
		q.buf = nil
	}
}

// append adds bytes. It first moves the unread bytes to the front if more than half is read, or the
// memory is full.
func (q *byteQueue) append(b []byte) {
	if q.off > len(q.buf)/2 || q.off > 0 && len(q.buf)+len(b) > cap(q.buf) {
		n := copy(q.buf, q.buf[q.off:])
		q.buf, q.off = q.buf[:n], 0
	}
	q.grow(len(b))
	q.buf = append(q.buf, b...)
}

// grow makes room for n more bytes. A large queue grows only by an eighth more than it needs,
// because it belongs to a peer that does not read.
func (q *byteQueue) grow(n int) {
	need := len(q.buf) + n
	if need <= cap(q.buf) || need <= keptQueue {
		return
	}
	larger := make([]byte, len(q.buf), min(need+need/8, max(need, maxReliableBytes)))
	copy(larger, q.buf)
	q.buf = larger
}

// take moves at most limit bytes to dst.
func (q *byteQueue) take(dst []byte, limit int) []byte {
	n := min(q.size(), limit)
	dst = append(dst, q.buf[q.off:q.off+n]...)
	q.off += n
	if q.off == len(q.buf) {
		q.reset()
	}
	return dst
}

// messageQueue is a bounded queue of encoded unreliable messages in one piece of memory. A full
// queue drops its oldest entries.
type messageQueue struct {
	buf   []byte
	spans []span
	head  int
}

type span struct{ start, end int32 }

func (q *messageQueue) len() int { return len(q.spans) - q.head }

func (q *messageQueue) size() int {
	if q.len() == 0 {
		return 0
	}
	return len(q.buf) - int(q.spans[q.head].start)
}

func (q *messageQueue) reset() { q.buf, q.spans, q.head = q.buf[:0], q.spans[:0], 0 }

// front returns the oldest entry.
func (q *messageQueue) front() []byte {
	s := q.spans[q.head]
	return q.buf[s.start:s.end]
}

// pop discards the oldest entry.
func (q *messageQueue) pop() {
	q.head++
	if q.head == len(q.spans) {
		q.reset()
	}
}

// room drops the oldest entries until an entry of n bytes fits, and returns the number of dropped
// entries.
func (q *messageQueue) room(n int) (dropped int) {
	for q.len() > 0 && (q.len() >= maxUnreliable || q.size()+n > maxUnreliableBytes) {
		q.pop()
		dropped++
	}
	if q.head > len(q.spans)/2 || q.head > 0 && len(q.buf)+n > maxUnreliableMemory {
		q.compact()
	}
	if need := len(q.buf) + n; need > cap(q.buf) && need > maxUnreliableBytes/2 {
		q.buf = append(make([]byte, 0, maxUnreliableMemory), q.buf...)
	}
	return dropped
}

// compact moves the remaining entries to the front.
func (q *messageQueue) compact() {
	from := q.spans[q.head].start
	n := copy(q.buf, q.buf[from:])
	q.buf = q.buf[:n]
	k := copy(q.spans, q.spans[q.head:])
	q.spans, q.head = q.spans[:k], 0
	for i := range q.spans {
		q.spans[i].start -= from
		q.spans[i].end -= from
	}
}

// close adds to the queue the entry that was appended to buf from start on.
func (q *messageQueue) close(start int) {
	q.spans = append(q.spans, span{int32(start), int32(len(q.buf))})
}

// appendAll moves all entries of from to the end of q, and returns the number of entries that were
// dropped because q was full.
func (q *messageQueue) appendAll(from *messageQueue) (dropped int) {
	if q.len() == 0 {
		*q, *from = *from, *q
		return 0
	}
	for from.len() > 0 {
		b := from.front()
		dropped += q.room(len(b))
		start := len(q.buf)
		q.buf = append(q.buf, b...)
		q.close(start)
		from.pop()
	}
	return dropped
}
