package transport

// Backlog stores reliable messages until the peer confirms them, so that the end of a connection
// does not lose them: the next connection first sends the unconfirmed messages. Messages are
// numbered from 1 over all connections of a client, in each direction; the numbers are not sent,
// because a stream is complete and ordered. A Backlog belongs to the goroutine of the sessions'
// owner, and is passed from session to session.
type Backlog struct {
	kept      byteQueue // encoded frames, oldest first
	confirmed uint64    // number of messages before the first in kept
	sent      uint64    // number of messages up to the last in kept
	awaits    bool      // after a resume: the peer's first confirmation has not arrived yet
	overflow  bool
}

// Len returns the number of kept messages.
func (b *Backlog) Len() int { return int(b.sent - b.confirmed) }

// Bytes returns the size of the kept messages.
func (b *Backlog) Bytes() int { return b.kept.size() }

// Overflowed reports whether a message was lost because the backlog was full. Then the client
// cannot continue over another connection.
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
