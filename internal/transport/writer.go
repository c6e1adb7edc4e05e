package transport

import (
	"errors"
	"time"
)

// ErrDatagramTooLarge is the error of a link that cannot send a datagram of this size now.
var ErrDatagramTooLarge = errors.New("transport: datagram is too large for the link")

// ErrBehind is the error for a datagram that expired before the link could send it, because earlier
// data still waited.
var ErrBehind = errors.New("transport: link is behind")

// sendDatagrams passes every pending datagram to send, which must not keep it. It also frees the
// snapshot's slot after its last packet, and counts the time of each call as choke or as flush lag.
// A datagram for which send fails is counted and lost; any error but ErrDatagramTooLarge and
// ErrBehind ends the sending.
func (l *leg) sendDatagrams(clock func() time.Duration, send func(datagram []byte) error) error {
	at := clock()
	buf := l.scratch.Swap(nil) // Another call, which waits in send, may be using it.
	if buf == nil {
		buf = new([]byte)
	}
	defer l.scratch.Store(buf)
	for {
		b, ok := l.appendDatagram((*buf)[:0], at)
		*buf = b
		if !ok {
			return nil
		}
		err := send(b)
		sent := clock()
		l.datagramSent(at, sent, err)
		if err != nil && !errors.Is(err, ErrDatagramTooLarge) && !errors.Is(err, ErrBehind) {
			return err
		}
		at = sent
	}
}

// appendDatagram appends the next datagram to send, and reports false when there is none. The
// packets of a snapshot are sent first; acknowledgements, time sync and unreliable messages fill
// the remaining space. at is the time for the time sync.
func (l *leg) appendDatagram(dst []byte, at time.Duration) ([]byte, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := &l.box
	if b.ended || b.moving || !b.due() {
		return dst, false
	}
	base := len(dst)
	b.number++
	b.beat = false
	dst = appendNumber(dst, b.number)
	if b.acksDue {
		dst = append(dst, b.acks[:b.acksLen]...)
		b.acksDue = false
	}
	if b.requestDue {
		dst = appendTimeRequest(dst, at)
		b.requestDue = false
	}
	if b.replyDue {
		dst = appendTimeReply(dst, b.replyRequest, b.replyArrived, at)
		b.replyDue = false
	}
	dst = l.appendPacketLocked(dst)
	tail := l.appendTailLocked(l.tail[:0], MaxDatagram-(len(dst)-base))
	l.tail = tail
	for b.unreliable.len() > 0 && len(dst)-base+len(tail)+len(b.unreliable.front()) <= MaxDatagram {
		dst = append(dst, b.unreliable.front()...)
		b.unreliable.pop()
	}
	if l.cfg.Client && at-time.Duration(l.lastArrival.Load()) >= padAfter {
		dst = appendPadding(dst, base, padTo-len(tail))
	}
	dst = append(dst, tail...)
	l.stats.DatagramsOut.Add(1)
	l.stats.DatagramBytesOut.Add(uint64(len(dst) - base))
	b.sent += uint64(len(dst) - base)
	return dst, true
}

// appendTailLocked appends the fields after the messages: the inputs, and the input status and the
// mispredictions if there is room. Space for them is reserved before the messages.
func (l *leg) appendTailLocked(dst []byte, room int) []byte {
	b := &l.box
	dst = appendInputs(dst, b.inputs)
	b.inputs = b.inputs[:0]
	if b.statusDue && room >= maxInputStatus {
		dst = appendInputStatus(dst, b.status)
		b.statusDue, b.statusWaits = false, 0
	}
	if room-len(dst) >= maxMispredicted {
		dst = appendField(dst, fieldMispredicted, b.mispredicted)
		b.mispredicted = 0
	}
	return dst
}

// appendPacketLocked appends the snapshot's next packet.
func (l *leg) appendPacketLocked(dst []byte) []byte {
	b := &l.box
	for b.next < len(b.packets) {
		p := b.packets[b.next]
		b.next++
		b.lastInHand = b.next == len(b.packets)
		if len(p) <= MaxStatePacket {
			return appendState(dst, p)
		}
		l.stats.Drop(DropOversize, 1)
	}
	return dst
}

// datagramSent records the outcome of the last datagram. The call of send lasted from started to
// ended: a long call has waited for the peer's congestion window, which counts as choke and not as
// flush lag.
func (l *leg) datagramSent(started, ended time.Duration, err error) {
	switch {
	case errors.Is(err, ErrBehind):
		l.stats.Drop(DropDatagramBehind, 1)
	case err != nil:
		l.stats.Drop(DropDatagramUnsent, 1)
	}
	l.mu.Lock()
	b := &l.box
	if b.lastInHand { // The owner may use the slot again.
		b.lastInHand, b.packets, b.next = false, nil, 0
		l.slotBusy.Store(false)
	}
	if d := ended - started; d >= chokeThreshold {
		b.choked += d
		l.stats.Chokes.Add(1)
		l.stats.ChokeNanos.Add(uint64(d))
	}
	done := b.flushing && !b.due()
	lag := max(ended-b.flushAt-b.choked, 0)
	if done {
		b.flushing = false
	}
	l.mu.Unlock()
	if done {
		l.flushLag.Store(int64(max(lag, 1)))
	}
	if done && l.stats.FlushLag != nil {
		l.stats.FlushLag(lag)
	}
}

// appendStream appends the next reliable bytes, at most limit of them, or none if none are queued.
func (l *leg) appendStream(dst []byte, limit int) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(dst)
	dst = l.box.reliable.take(dst, limit)
	l.box.moved = l.box.moved || len(dst) > n
	l.streamBehind.Store(l.box.reliable.size() > maxReliableBytes/2)
	l.stats.StreamBytesOut.Add(uint64(len(dst) - n))
	l.box.sent += uint64(len(dst) - n)
	return dst
}
