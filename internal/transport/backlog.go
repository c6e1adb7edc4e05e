package transport

// Backlog is what makes reliable messages outlive the connection that they were sent over: those
// that the peer has not said to have are kept, and a connection that follows carries them first.
// Messages are numbered from 1 over all connections of a client, in each direction; the number
// does not travel, because a stream loses nothing and keeps the order. A Backlog belongs to the
// goroutine of the sessions' owner, and stays with it from session to session.
type Backlog struct {
	kept      byteQueue // encoded frames, oldest first
	confirmed uint64    // messages before the first of them
	sent      uint64    // messages up to the last of them
	awaits    bool      // the peer has not said yet where it goes on
	overflow  bool
}

// Len returns how many messages are kept.
func (b *Backlog) Len() int { return int(b.sent - b.confirmed) }

// Overflowed reports whether a message was lost because there was no room: nobody can go on then.
func (b *Backlog) Overflowed() bool { return b.overflow }

// Confirm lets go of the messages up to the number that the peer says to have. It reports false
// for a number that makes no sense: of a message that was never sent, or from before what the
// peer had.
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

// add keeps a frame, or reports that there is no room.
func (b *Backlog) add(frame []byte) bool {
	if b.kept.size()+len(frame) > maxBacklogBytes {
		b.overflow = true
		return false
	}
	b.kept.append(frame)
	b.sent++
	return true
}
