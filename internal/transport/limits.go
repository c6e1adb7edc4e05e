package transport

import (
	"fmt"
	"time"

	"github.com/netloop/netloop/internal/input"
)

// Limits of the wire. Both sides hold them, and docs/WIRE.md repeats them.
const (
	// ProtocolVersion is the version of the protocol that this package speaks.
	ProtocolVersion = 1
	// MaxFrame bounds one frame on the stream, its length prefix not counted: large
	// enough for every message of a game, small enough that a hostile length costs nothing.
	MaxFrame = 16 << 10
	// MaxText bounds a text for people. It also travels as the reason of a QUIC close,
	// which must fit one packet with everything else in it.
	MaxText = 512
	// MaxPayload bounds the encoded message in a frame; the rest is room for the
	// envelope's fields and the longest text.
	MaxPayload = MaxFrame - 64 - MaxText
	// MaxHandshake bounds a Hello and a Welcome: room for a large token and for what a
	// player brings along. Decoding this much hostile protobuf stays under 2 MB and 2 ms.
	MaxHandshake = 32 << 10
	// MaxDatagram bounds a datagram's payload: what every path carries inside one
	// QUIC packet of 1200 B.
	MaxDatagram = 1150
	// padAfter is how long a client has heard nothing when it begins to pad its datagrams to
	// padTo bytes: its server may have restarted, and answers only packets that are larger
	// than its answer of 42 bytes, lest two such servers answer each other for ever
	// (RFC 9000, section 10.3.3). QUIC adds 24 bytes.
	padAfter = 50 * time.Millisecond
	padTo    = 32
	// MaxStatePacket bounds a state packet, so that a datagram has room for its number
	// and a time reply beside it.
	MaxStatePacket = 1100
	// MaxStateRecord bounds a record of state in a frame of its own.
	MaxStateRecord = MaxFrame - 64
	// MaxStatePackets bounds the packets of one snapshot: QUIC's pacer sends the first
	// ten packets of a burst at once and delays the rest.
	MaxStatePackets = 10
	// MaxDatagramPayload bounds the encoded unreliable message: it must fit a datagram
	// that carries nothing else.
	MaxDatagramPayload = MaxDatagram - 64
	// MaxInputs bounds the packet of inputs in a datagram, so that acknowledgements and a time
	// request have room beside it.
	MaxInputs = input.MaxPacket
	// DuplicateWindow is how many datagram numbers back a duplicate is recognised;
	// anything older is discarded as stale.
	DuplicateWindow = 1024
	// AckWindow is how many state packets back acknowledgements reach.
	AckWindow = 1024
	// MaxAckRanges bounds the ranges in a datagram: at 20 % loss 32 ranges cover about
	// 130 packets, and cost at most 130 B.
	MaxAckRanges = 32
)

// Limits of this implementation.
const (
	// maxUnreliable and maxUnreliableBytes bound the unreliable messages that wait for
	// one peer: more than fits the datagrams of several flushes.
	maxUnreliable      = 512
	maxUnreliableBytes = 32 << 10
	// maxUnreliableMemory is the memory of these, with what has left in front of them.
	maxUnreliableMemory = maxUnreliableBytes + 8<<10
	// maxReliableBytes bounds the reliable data that waits for one peer: a second of a link of
	// 1.5 Mbit/s. A healthy peer's queue is empty after every flush; a peer that is this far
	// behind does not read.
	maxReliableBytes = 192 << 10
	// maxBacklogBytes bounds what is kept for a peer that may come back: it says what it has
	// once for 16 messages or 32 KiB, and all of it must fit the queue of its next connection.
	maxBacklogBytes = 128 << 10
	// maxStuck is for how long the reliable data of a client may not move while some waits, and
	// stuckStep what a flush adds to that at most: a server that stood still finds queues
	// that could not move.
	maxStuck  = 10 * time.Second
	stuckStep = 250 * time.Millisecond
	// stuckBacklog is from how many messages on a backlog is to move: far more than a client
	// may have without saying so.
	stuckBacklog = 8 * receiptMessages
	// keptQueue is the memory that an empty queue keeps for the next bytes.
	keptQueue = 32 << 10
	// DefaultInboxPerSession bounds the arrivals of one session between two swaps:
	// ten times what a client sends in 50 ms.
	DefaultInboxPerSession = 1024
	// maxInboxBytesPerSession bounds what one session has under way, from the goroutine that
	// reads to the end of the handler: its messages, each with what it takes decoded and while it
	// waits. That is the dearest message, 16 of the largest frames, or 2 000 small ones of a
	// burst. sparedInboxBytes are for all other arrivals, however many messages wait.
	maxInboxBytesPerSession = 264 << 10
	sparedInboxBytes        = 32 << 10
	// smallMessage is what a small message counts with: an inbox that is to take more of them at
	// once than the defaults do, of which the bytes above hold 2 256, has more bytes for them.
	smallMessage = 119
	// maxInbox and maxInboxBytes bound an inbox over all of its sessions, so that a
	// crowd of senders that each keep their own bound cannot exhaust the memory.
	maxInbox      = 1 << 16
	maxInboxBytes = 64 << 20
	// fairInbox and fairInboxBytes are what a session may always add, however much the
	// others have: a crowd that fills the inbox costs a quiet client nothing. It is
	// what a client sends in two seconds.
	fairInbox      = 128
	fairInboxBytes = 32 << 10
	// discardUnit is the size of something meaningless that counts as one more message:
	// what a message of a game takes at most, as a rule. Otherwise the largest frames,
	// at a rate that is no flood of messages, would be one of bytes.
	discardUnit = 1 << 10
	// beatPeriod is how often a client may send a datagram with nothing new in it: it
	// flushes at most at the tick rate, of which this is the highest.
	beatPeriod = time.Millisecond
	// MaxDecoded bounds what one message takes decoded, estimated from its bytes: more than
	// any frame of a plain struct comes to, and what a frame of empty protobuf messages
	// multiplies to is no message of a game. Decoding this much takes less than 1 MiB and 1 ms.
	MaxDecoded = 256 << 10
	// readCost is with how many bytes one of a message counts at least.
	readCost = 6
	// maxStatusWaits is how many flushes a word about inputs waits for a datagram that leaves
	// anyway.
	maxStatusWaits = 4
	// chokeThreshold tells a send that waited for the peer's congestion window from
	// one that did not: handing a datagram over takes microseconds.
	chokeThreshold = time.Millisecond
)

// CheckPayload reports a message of n encoded bytes that can never leave.
func CheckPayload(n int, reliable bool) error {
	kind, limit := "an unreliable", MaxDatagramPayload
	if reliable {
		kind, limit = "a reliable", MaxPayload
	}
	if n > limit {
		return fmt.Errorf("%d bytes, but %s message has at most %d", n, kind, limit)
	}
	return nil
}
