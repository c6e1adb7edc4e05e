package transport

import (
	"strings"
	"unsafe"

	"github.com/netloop/netloop/internal/input"
	"github.com/netloop/netloop/internal/limits"
)

// Bounds are the rows of this package in docs/LIMITS.md. The bounds of the wire format are in
// docs/WIRE.md.
func Bounds() limits.Table {
	return limits.Table{limits.Session: sessionBounds(), limits.Queues: queueBounds(), limits.Answers: answerBounds()}
}

func sessionBounds() []limits.Limit {
	const (
		scaled      = "RPCLimits.PerSecond, RPCLimits.Burst, --client-rate, --client-burst"
		beyondBurst = "dropped; beyond twice the burst disconnected (`CODE_FLOOD`)"
		beyondTwice = "beyond twice the burst disconnected (`CODE_FLOOD`)"
	)
	l := &DefaultLimits
	return []limits.Limit{
		{
			Name: "datagrams of a session", Default: limits.Say("%v, bursts of %v", l.Datagrams.PerSecond, l.Datagrams.Burst),
			Unit: "a second", Config: scaled, Counter: "datagram/too_many", Full: beyondBurst,
		},
		{
			Name:    "bytes of a session, of its datagrams and by itself of its stream",
			Default: limits.Say("%v, bursts of %v", limits.Bytes(l.Bytes.PerSecond), limits.Bytes(l.Bytes.Burst)),
			Unit:    "a second; a message counts decoded, or sixfold", Config: scaled,
			Counter: "datagram/too_many_bytes, stream/too_many_bytes", Full: "datagrams: " + beyondBurst + "; stream: " + beyondTwice,
		},
		{
			Name: "frames of a session's stream", Default: limits.Say("%v, bursts of %v", l.Frames.PerSecond, l.Frames.Burst),
			Unit: "a second", Config: scaled, Counter: "stream/too_many_frames", Full: beyondTwice,
		},
		{
			Name: "a message decoded", Default: limits.Bytes(MaxDecoded), Unit: "estimated before it is decoded",
			Counter: "message/too_large_decoded", Full: "dropped, and counted as meaningless",
		},
		{
			Name:    "meaningless data, per session",
			Default: limits.Say("counts as one message, and one more per %v", limits.Bytes(discardUnit)), Unit: "one arrival represents those of a tick",
			Counter: "stream/unknown_frame, datagram/malformed, datagram/wrong_direction, message/malformed, message/unknown_stage, message/undecodable",
			Full:    "the limits of messages below; more than the inbox holds: on the stream disconnected (`CODE_FLOOD`)",
		},
		{
			Name: "messages of a session in progress, until their handlers have returned",
			Default: limits.Say("%v, or %v for each arrival that the inbox holds, if that is more",
				limits.Bytes(maxInboxBytesPerSession), limits.Bytes(smallMessage)),
			Unit:   "messages as they are decoded, and with the " + limits.Written(limits.Bytes(entryBytes)) + " of an arrival",
			Config: "RPCLimits.Burst, --client-burst", Counter: "inbox/session_full, inbox/waiting", Full: "as a full inbox of the session",
		},
		{
			Name: "… of other data", Default: limits.Bytes(sparedInboxBytes),
			Counter: "inbox/session_full", Full: "the same",
		},
		{
			Name: "acknowledgements, per client", Default: limits.Say("one of each kind, of %v ranges", maxMergedAcks), Unit: "a tick",
			Full: "merged; the oldest ranges go",
		},
		{
			Name: "memory that one hostile client takes", Default: (worstMemory() + 1<<16 - 1) &^ (1<<16 - 1),
			Unit: worstSum(),
			Full: "each of them by its own row",
		},
	}
}

func queueBounds() []limits.Limit {
	return []limits.Limit{
		{
			Name: "inbox of the room", Default: limits.Say("%v, %v", maxInbox, limits.Bytes(maxInboxBytes)), Unit: "arrivals of all sessions",
			Counter: "inbox/full", Full: "as a full inbox of the session",
		},
		{
			Name: "… beyond it, of each session", Default: limits.Say("%v, %v", fairInbox, limits.Bytes(fairInboxBytes)), Unit: "arrivals",
			Counter: "inbox/full", Full: "the same",
		},
	}
}

func answerBounds() []limits.Limit {
	return []limits.Limit{
		{
			Name: "mailbox, unreliable", Default: limits.Say("%v, %v", maxUnreliable, limits.Bytes(maxUnreliableBytes)), Unit: "messages",
			Counter: "mailbox/unreliable_full", Full: "the oldest are dropped",
		},
		{
			Name: "mailbox, reliable", Default: limits.Bytes(maxReliableBytes),
			Counter: "mailbox/reliable_full", Full: "disconnected (`CODE_SLOW`), without an effect on others",
		},
		{
			Name: "reliable messages kept for a client that may come back", Default: limits.Bytes(maxBacklogBytes),
			Counter: "mailbox/reliable_full", Full: "disconnected, or given up (`CODE_SLOW`)",
		},
		{
			Name:    "reliable data that waits and does not move; " + limits.Written(stuckBacklog) + " messages that a client does not say to have",
			Default: maxStuck, Counter: "mailbox/reliable_full", Full: "disconnected (`CODE_SLOW`)",
		},
		{
			Name: "words about inputs", Default: limits.Say("1, for %v flushes while no datagram leaves anyway", maxStatusWaits), Unit: "per client",
			Full: "the newer one replaces it",
		},
		{
			Name: "mailbox, snapshot", Default: limits.Say("1, of at most %v packets", MaxStatePackets), Unit: "slot",
			Counter: `netloop_snapshots_deferred_total{reason="slot_busy"}`, Full: "not encoded; it remains due",
		},
	}
}

// share is one part of a client's memory.
type share struct {
	of    string
	bytes limits.Bytes
}

// shares are all parts, each at its bound: messages under way, the queues that the client does not
// read, an incomplete frame, inputs that wait for their step, and QUIC's memory, which is the
// windows of the connection and its queues of datagrams.
func shares() []share {
	const (
		quicReceived   = 128 * 1200
		quicSent       = 32 * 1200
		quicConnection = 48 << 10
	)
	return []share{
		{"under way", maxInboxBytesPerSession + sparedInboxBytes},
		{"in the reliable mailbox", maxReliableBytes + keptQueue},
		{"of reliable messages kept", maxBacklogBytes},
		{"in the unreliable mailbox", 2 * limits.Bytes(maxUnreliableMemory+2*maxUnreliable*int(unsafe.Sizeof(span{}))*5/4)},
		{"of a frame", MaxFrame * 5 / 4},
		{"of inputs", input.MaxMemory},
		{"in QUIC's windows and queues", quicReceived + quicSent + quicConnection},
	}
}

// worstMemory is the most memory that one hostile client can make a server hold, by its limits.
func worstMemory() (n limits.Bytes) {
	for _, s := range shares() {
		n += s.bytes
	}
	return n
}

// worstSum is the sum of worstMemory in words.
func worstSum() string {
	var all []string
	for _, s := range shares() {
		all = append(all, limits.Written(s.bytes)+" "+s.of)
	}
	return "the sum of " + strings.Join(all, ", ")
}
