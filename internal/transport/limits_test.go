package transport

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/input"
	"github.com/netloop/netloop/internal/testing/golden"
)

// The limits of the wire in docs/WIRE.md match the code.
func TestTheLimitsMatchThePage(t *testing.T) {
	wire := func(row string, bounds ...any) {
		t.Helper()
		golden.Row(t, "../../docs/WIRE.md", row, bounds...)
	}
	wire("a frame; `hello` and `welcome` | %v bytes; %v bytes |", MaxFrame, MaxHandshake)
	wire("the parts of the tables; their bytes | %v; %v |", maxTableParts, MaxTables)
	wire("a text | %v bytes |", MaxText)
	wire("addresses of a destination; hashes of one; each of its texts | %v; %v; %v bytes |", MaxAddresses, maxHashes, maxAddress)
	wire("a payload in a frame; in a datagram | %v bytes (writer); %v bytes (writer) |", MaxPayload, MaxDatagramPayload)
	wire("a datagram | %v bytes |", MaxDatagram)
	wire("how far back datagram numbers, and acknowledgements, reach | %v |", AckWindow)
	wire("ranges of acknowledgements in a datagram | %v |", MaxAckRanges)
	wire("inputs in a packet; its bytes | %v to %v; %v (writer) |", input.MinRepeats, input.MaxRepeats, MaxInputs)
	wire("how far ahead of the newest step that has run an input may be | %v to %v steps |", input.MinWindow, input.MaxWindow)
	wire("an input | %v bytes (writer) |", input.MaxSize)
	wire("a state packet | %v bytes (writer) |", MaxStatePacket)
	wire("packets of a snapshot | %v (writer);", MaxStatePackets)
	if MaxInputs != input.MaxPacket {
		t.Errorf("a datagram takes %d bytes of inputs, and a packet of inputs has %d", MaxInputs, input.MaxPacket)
	}
	var parts []string
	bounds := []any{(worstMemory() + 1<<16 - 1) &^ (1<<16 - 1)}
	for _, s := range shares() {
		parts, bounds = append(parts, "%v "+s.of), append(bounds, s.bytes)
	}
	golden.Row(t, "../../docs/LIMITS.md", "memory that one hostile client takes | %v | the sum of "+strings.Join(parts, ", ")+" |", bounds...)
}

// share is one part of a client's memory.
type share struct {
	of    string
	bytes golden.Bytes
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
		{"in the unreliable mailbox", 2 * golden.Bytes(maxUnreliableMemory+2*maxUnreliable*int(unsafe.Sizeof(span{}))*5/4)},
		{"of a frame", MaxFrame * 5 / 4},
		{"of inputs", input.MaxMemory60Hz},
		{"in QUIC's windows and queues", quicReceived + quicSent + quicConnection},
	}
}

// worstMemory is the most memory that one hostile client can make a server hold, by its limits.
func worstMemory() (n golden.Bytes) {
	for _, s := range shares() {
		n += s.bytes
	}
	return n
}
