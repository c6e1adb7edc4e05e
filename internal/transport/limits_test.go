package transport

import (
	"testing"

	"github.com/netloop/netloop/internal/golden"
	"github.com/netloop/netloop/internal/input"
)

// What the pages say of a limit of the wire, and of the queues here, is so.
func TestTheLimitsAreThoseOfThePages(t *testing.T) {
	wire := func(subject, says string, bounds ...any) {
		t.Helper()
		golden.Row(t, "../../docs/WIRE.md", subject, says, bounds...)
	}
	wire("a frame; `hello` and `welcome`", "%v bytes; %v bytes |", MaxFrame, MaxHandshake)
	wire("the parts of the tables; their bytes", "%v; %v |", maxTableParts, MaxTables)
	wire("a text", "%v bytes |", MaxText)
	wire("a payload in a frame; in a datagram", "%v bytes (writer); %v bytes (writer) |", MaxPayload, MaxDatagramPayload)
	wire("a datagram", "%v bytes |", MaxDatagram)
	wire("how far back datagram numbers, and acknowledgements, reach", "%v |", AckWindow)
	wire("ranges of acknowledgements in a datagram", "%v |", MaxAckRanges)
	wire("inputs in a packet; its bytes; how far ahead of the newest step that has run", "%v; %v (writer); %v |", input.Repeats, MaxInputs, input.Window)
	wire("an input", "%v bytes (writer) |", input.MaxSize)
	wire("a state packet", "%v bytes (writer) |", MaxStatePacket)
	wire("packets of a snapshot", "%v (writer);", MaxStatePackets)

	here := func(subject, says string, bounds ...any) {
		t.Helper()
		golden.Row(t, "../../docs/ARCHITECTURE.md", subject, says, bounds...)
	}
	here("inbox, per session", "256 arrivals and `RPC.Burst`, %v, or %v for each of these if that is more, messages as they are decoded "+
		"and with the %v of an arrival, until their handlers have ended; %v more",
		golden.Bytes(maxInboxBytesPerSession), golden.Bytes(smallMessage), golden.Bytes(entryBytes), golden.Bytes(sparedInboxBytes))
	here("reliable messages kept for a client that may come back", "%v |", golden.Bytes(maxBacklogBytes))
	here("reliable data that waits and does not move; 128 messages that a client does not say to have", "%v |", maxStuck)
	rate := func(subject string, r Rate, size func(int) any) {
		t.Helper()
		here(subject, "%v a second, bursts of %v (", size(r.PerSecond), size(r.Burst))
	}
	number, bytes := func(n int) any { return n }, func(n int) any { return golden.Bytes(n) }
	rate("datagrams of a session", DefaultLimits.Datagrams, number)
	rate("frames of a session's stream", DefaultLimits.Frames, number)
	rate("bytes of a session, of its datagrams and by itself of its stream; a message counts decoded, or sixfold", DefaultLimits.Bytes, bytes)
	here("acknowledgements, per client", "one of each kind a tick, of %v ranges |", maxMergedAcks)
	here("a message decoded", "%v,", golden.Bytes(MaxDecoded))
	here("inbox, per room", "%v arrivals, %v; beyond it %v and %v of each session |",
		maxInbox, golden.Bytes(maxInboxBytes), fairInbox, golden.Bytes(fairInboxBytes))
	here("mailbox, unreliable", "%v messages, %v |", maxUnreliable, golden.Bytes(maxUnreliableBytes))
	here("mailbox, reliable", "%v", golden.Bytes(maxReliableBytes))
	here("mailbox, snapshot", "1 slot of at most %v packets |", MaxStatePackets)
}
