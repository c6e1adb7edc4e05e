package transport

import (
	"testing"

	"github.com/netloop/netloop/internal/input"
	"github.com/netloop/netloop/internal/testing/golden"
)

// The limits of the wire in docs/WIRE.md match the code.
func TestTheLimitsAreThoseOfThePage(t *testing.T) {
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
	wire("inputs in a packet; its bytes", "%v to %v; %v (writer) |", input.LeastRepeats, input.MostRepeats, MaxInputs)
	wire("how far ahead of the newest step that has run an input may be", "%v to %v steps |", input.LeastWindow, input.MostWindow)
	wire("an input", "%v bytes (writer) |", input.MaxSize)
	wire("a state packet", "%v bytes (writer) |", MaxStatePacket)
	wire("packets of a snapshot", "%v (writer);", MaxStatePackets)
}
