package transport

import (
	"fmt"
	"time"
)

// Limits of the wire. Both sides enforce them, and docs/WIRE.md lists them.
const (
	// ProtocolVersion is the protocol version of this package.
	ProtocolVersion = 1
	// MaxFrame bounds one frame on the stream, without its length prefix: large enough for every
	// message of a game, and small enough that a hostile length costs little memory.
	MaxFrame = 16 << 10
	// MaxText bounds a text for people. It is also sent as the reason of a QUIC close, which must
	// fit one packet together with its other contents.
	MaxText = 512
	// MaxPayload bounds the encoded payload of a message: 64 bytes of its frame are left for the
	// envelope's fields, and MaxText bytes for the longest text.
	MaxPayload = MaxFrame - 64 - MaxText
	// MaxHandshake bounds a Hello and a Welcome: enough for a large token and a player's own data.
	// Decoding this much hostile protobuf takes less than 2 MB and 2 ms.
	MaxHandshake = 32 << 10
	// MaxDatagram bounds a datagram's payload: every path transfers this many bytes inside one QUIC
	// packet of 1200 B.
	MaxDatagram = 1150
	// padAfter is the time without arrivals after which a client pads its datagrams to padTo bytes.
	// The server may have restarted; then it answers only packets larger than its answer of 42
	// bytes, so that two such servers do not answer each other for ever (RFC 9000, section 10.3.3).
	// QUIC adds 24 bytes.
	padAfter = 50 * time.Millisecond
	padTo    = 32
	// MaxStatePacket bounds a state packet, so that its number and a time reply fit into the same
	// datagram.
	MaxStatePacket = 1100
	// MaxStateRecord bounds a state record, which has its own frame.
	MaxStateRecord = MaxFrame - 64
	// MaxStatePackets bounds the packets of one snapshot: QUIC's pacer sends the first
	// ten packets of a burst at once and delays the rest.
	MaxStatePackets = 10
	// MaxDatagramPayload bounds the encoded unreliable message: it must fit a datagram without
	// other fields.
	MaxDatagramPayload = MaxDatagram - 64
	// MaxInputs bounds the packet of inputs in a datagram, so that acknowledgements and a time
	// request fit into the same datagram.
	MaxInputs = 900
	// DuplicateWindow is the number of recent datagram numbers among which duplicates are
	// recognised; older numbers are discarded as stale.
	DuplicateWindow = 1024
	// AckWindow is the number of recent state packets that can be acknowledged.
	AckWindow = 1024
	// MaxAckRanges bounds the ranges in a datagram: at 20 % loss 32 ranges cover about
	// 130 packets, and cost at most 130 B.
	MaxAckRanges = 32
)

// Limits of this implementation.
const (
	// maxUnreliable and maxUnreliableBytes bound the queued unreliable messages for one peer: more
	// than the datagrams of several flushes hold.
	maxUnreliable      = 512
	maxUnreliableBytes = 32 << 10
	// maxUnreliableMemory bounds the memory of their queue, in which messages that were sent
	// already use space until the queue is compacted.
	maxUnreliableMemory = maxUnreliableBytes + 8<<10
	// maxReliableBytes bounds the queued reliable data for one peer: one second of a 1.5 Mbit/s
	// link. A healthy peer's queue is empty after every flush; a peer with a full queue does not
	// read.
	maxReliableBytes = 192 << 10
	// maxBacklogBytes bounds the data kept for a peer that may reconnect: the peer confirms its
	// messages every 16 messages or 32 KiB, and the whole backlog must fit the queue of its next
	// connection.
	maxBacklogBytes = 128 << 10
	// maxStuck is the time after which a client is disconnected if none of its queued reliable data
	// was sent, or none of its backlog confirmed. stuckStep is the most that one flush adds to that
	// time, because a pause of the server, in which it does not flush, is not the client's fault.
	maxStuck  = 10 * time.Second
	stuckStep = 250 * time.Millisecond
	// A client with stuckBacklog or more unconfirmed messages must confirm some of them within
	// maxStuck, or it is disconnected. Correct clients have far fewer unconfirmed messages.
	stuckBacklog = 8 * receiptMessages
	// keptQueue is the memory that an empty queue keeps for reuse.
	keptQueue = 32 << 10
	// DefaultInboxPerSession bounds the arrivals of one session between two swaps: ten times the
	// number that a client sends in 50 ms.
	DefaultInboxPerSession = 1024
	// maxInboxBytesPerSession bounds the bytes of one session's unprocessed messages, from the
	// reading goroutine to the end of the handler, each with its decoded size and its entry: one
	// message of the most expensive kind, 16 of the largest frames, or 2 000 small messages of a
	// burst. Arrivals of other kinds may use sparedInboxBytes more, so that messages cannot
	// displace them.
	maxInboxBytesPerSession = 264 << 10
	sparedInboxBytes        = 32 << 10
	// smallMessage is the number of bytes that a small message counts. maxInboxBytesPerSession is
	// enough for 2 256 of them; an inbox that accepts more arrivals than by default has a
	// proportionally larger bound.
	smallMessage = 119
	// maxInbox and maxInboxBytes bound an inbox over all of its sessions, so that many senders
	// within their own bounds cannot exhaust the memory.
	maxInbox      = 1 << 16
	maxInboxBytes = 64 << 20
	// fairInbox and fairInboxBytes are the arrivals that a session may always add, even if the
	// inbox is full, so that other sessions cannot exclude a client that sends little. A client
	// sends this much in two seconds.
	fairInbox      = 128
	fairInboxBytes = 32 << 10
	// discardUnit is the size of discarded data that counts as one more message: the usual largest
	// size of a game's message. Without it, a flood of the largest frames would count as few
	// messages.
	discardUnit = 1 << 10
	// MaxDecoded bounds the decoded size of one message, estimated from its bytes. No frame of a
	// plain struct reaches it; a frame full of empty protobuf messages exceeds it, but no game
	// sends one. Decoding this much takes less than 1 MiB and 1 ms.
	MaxDecoded = 256 << 10
	// readCost is the least number of decoded bytes charged for each encoded byte of a message.
	readCost = 6
	// maxStatusWaits is the number of flushes for which an input status waits for a datagram with
	// other contents; then it is sent in a separate datagram.
	maxStatusWaits = 4
	// chokeThreshold is the duration from which a send counts as a wait for the peer's congestion
	// window. A send without a wait takes microseconds.
	chokeThreshold = time.Millisecond
)

// CheckPayload returns an error for a message of n encoded bytes that is too large to send.
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
