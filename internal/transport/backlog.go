package transport

// Backlog keeps reliable messages until the peer confirms them, so that they survive the end of a
// connection: the next connection sends the unconfirmed ones first. Messages are numbered from 1
// over all connections of a client, in each direction; the numbers are not sent, because a stream
// is complete and ordered. A Backlog belongs to the goroutine of the sessions' owner, and is passed
// from session to session.
type Backlog struct {
	kept      byteQueue // encoded frames, oldest first
	confirmed uint64    // number of messages before the first in kept
	sent      uint64    // number of messages up to the last in kept
	awaits    bool      // after a resume: the peer's first confirmation has not arrived yet
	overflow  bool
}

// Len returns the number of kept messages.
func (b *Backlog) Len() int { return int(b.sent - b.confirmed) }

// Overflowed reports whether a message was lost for lack of space: no connection can continue then.
func (b *Backlog) Overflowed() bool { return b.overflow }

// Confirm drops the messages up to the number that the peer has received. It reports false for an
// invalid number: above the last message sent, or below an earlier confirmation.
func (b *Backlog) Confirm(received uint64) bool {
	if received < b.confirmed || received > b.sent {
		return false
	}
	for ; b.confirmed < received; b.confirmed++ {
		size, n := frameLength(b.kept.buf[b.kept.off:])
		b.kept.off += n + size
	}
	if b.kept.off == len(b.kept.buf) {
		b.kept.reset()
	}
	return true
}

// add keeps a frame, or reports false if there is no space.
func (b *Backlog) add(frame []byte) bool {
	if b.kept.size()+len(frame) > maxBacklogBytes {
		b.overflow = true
		return false
	}
	b.kept.append(frame)
	b.sent++
	return true
}
