package netloop

import (
	"fmt"
	"strings"

	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/room"
)

// Reason is the reason why the last change of a field was, or was not, sent to a client: see
// [Object.Explain]. The zero Reason is unknown; Explain never returns it.
type Reason uint8

// The reasons. If several apply, Explain returns the first in this order.
const (
	_ Reason = iota

	// The client may not get the change, or not before the next snapshot.
	ReasonDespawned    // the object is despawned
	ReasonNew          // the object was spawned after the last snapshot; the next snapshot has it
	ReasonHidden       // the client may not see the object
	ReasonNoPermission // the client may not read the field: see Class.Reads

	// The change has not been captured, so that no snapshot contains it.
	ReasonThreshold // the change is smaller than the field's threshold
	ReasonInterval  // the field's interval since its last change has not passed
	ReasonUnnoticed // the value was changed without Edit

	// The client has the value.
	ReasonNotEdited    // the field was not edited since the object became visible to the client
	ReasonUnchanged    // the object was edited in the last tick, and this field kept its value
	ReasonAcknowledged // the client has acknowledged the value

	// The value was sent.
	ReasonSent     // with the last tick's snapshot
	ReasonStream   // the object fits no packet and is sent over the stream, alone until it arrives
	ReasonInFlight // before the last tick; the packet is neither acknowledged nor lost

	// The value was not sent: the client got no snapshot in the last tick.
	ReasonNotDue       // no snapshot was due: see RoomSpec.SendEvery and OverloadHalved
	ReasonSlotBusy     // the client's last snapshot still waits at the server's end of the link
	ReasonWindowClosed // the limit of unacknowledged snapshots of its link is reached

	// The value was not sent: the last tick's snapshot does not contain it.
	ReasonShed       // the server is overloaded and the object weighs less than 1
	ReasonBudget     // the client's budget was used up by changes of higher priority
	ReasonPackets    // the packets were full with changes of higher priority
	ReasonStreamFull // the object fits no packet, and the stream is at its limit
	ReasonNext       // the obstacle is gone or the packet was lost; the next snapshot has it
	numReasons
)

// reasons has the name and the sentence of each reason.
var reasons = [numReasons][2]string{
	0:                  {"unknown", "the reason is unknown"},
	ReasonDespawned:    {"despawned", "the object is despawned"},
	ReasonNew:          {"new", "the object was spawned after the last snapshot; the next has it"},
	ReasonHidden:       {"hidden", "the client may not see the object"},
	ReasonNoPermission: {"no_permission", "the client may not read the field"},
	ReasonThreshold:    {"below_threshold", "the change is below the field's threshold"},
	ReasonInterval:     {"interval", "the field's interval is not over"},
	ReasonUnnoticed:    {"unnoticed", "the value was changed without Edit"},
	ReasonNotEdited:    {"not_edited", "the client has it, and it was not edited since it sees the object"},
	ReasonUnchanged:    {"unchanged", "the client has it, and it was edited and is the same"},
	ReasonAcknowledged: {"acknowledged", "the client has it"},
	ReasonSent:         {"sent", "it was sent with the last snapshot"},
	ReasonStream:       {"stream", "the object fits no packet and is under way over the stream, and nothing else of it is sent until it is there"},
	ReasonInFlight:     {"in_flight", "it was sent, and is neither acknowledged nor lost"},
	ReasonNotDue:       {"not_due", "no snapshot was due to the client"},
	ReasonSlotBusy:     {"slot_busy", "the client got no snapshot: its last one still waits for its connection"},
	ReasonWindowClosed: {"window_closed", "the client got no snapshot: as many are under way as its link takes"},
	ReasonShed:         {"shed", "the server is overloaded and sheds the object"},
	ReasonBudget:       {"budget", "the budget was used by changes of higher priority"},
	ReasonPackets:      {"packets", "the packets were full with changes of higher priority"},
	ReasonStreamFull:   {"stream_full", "the object fits no packet, and the stream had no room for it"},
	ReasonNext:         {"next", "the next snapshot has it"},
}

// String returns the reason's name, such as "in_flight".
func (r Reason) String() string { return r.words()[0] }

// words returns the reason's name and its sentence.
func (r Reason) words() [2]string {
	if r >= numReasons {
		return reasons[0]
	}
	return reasons[r]
}

// MarshalText returns the name, for JSON.
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// reasonOf translates the reasons of package netvar. Room.explain sets the other two itself:
// ReasonSlotBusy and ReasonWindowClosed.
var reasonOf = [...]Reason{
	netvar.WhyGone: ReasonDespawned, netvar.WhyNew: ReasonNew, netvar.WhyHidden: ReasonHidden,
	netvar.WhyWithheld: ReasonNoPermission, netvar.WhyThreshold: ReasonThreshold, netvar.WhyInterval: ReasonInterval, netvar.WhyUnnoticed: ReasonUnnoticed,
	netvar.WhyUnedited: ReasonNotEdited, netvar.WhyUnchanged: ReasonUnchanged, netvar.WhyAcked: ReasonAcknowledged,
	netvar.WhySent: ReasonSent, netvar.WhyStream: ReasonStream, netvar.WhyInFlight: ReasonInFlight,
	netvar.WhyNoSnapshot: ReasonNotDue, netvar.WhyShed: ReasonShed, netvar.WhyBudget: ReasonBudget,
	netvar.WhyPackets: ReasonPackets, netvar.WhyStreamFull: ReasonStreamFull, netvar.WhyNext: ReasonNext,
}

// Explanation is the result of [Object.Explain]: a reason and its evidence. Ticks are the server's;
// 0: never.
type Explanation struct {
	Reason Reason   `json:"reason"` // why the client has the value, or lacks it
	Client ClientID `json:"client"` // the client that is explained
	Object string   `json:"object"` // in the format of Ref.String
	Class  string   `json:"class"`  // class of the object
	Field  string   `json:"field"`  // if several fields match, the field that changed last

	Tick     uint64 `json:"tick"`     // the last tick that captured state
	Changed  uint64 `json:"changed"`  // the last tick that captured a change of the field
	Visible  uint64 `json:"visible"`  // the tick from which the client sees the object
	Baseline uint64 `json:"baseline"` // newest version that the client has acknowledged
	Sent     uint64 `json:"sent"`     // the last tick at which the object was sent to the client
	Version  uint64 `json:"version"`  // the object's version in that snapshot
	// Copies is the number of snapshots with Version, while one of them is in flight: at most 2.
	Copies  int      `json:"copies"`
	Packets []uint64 `json:"packets"` // ids of the state packets in flight with Version
	Until   uint64   `json:"until"`   // for ReasonInterval: the tick that will capture the change
}

// String returns the explanation as a sentence.
func (x Explanation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "client %d, %s %s, %s at tick %d: %s", x.Client, x.Class, x.Object, x.Field, x.Tick, x.Reason.words()[1])
	fmt.Fprintf(&b, " (changed at %d", x.Changed)
	if x.Visible > 0 {
		fmt.Fprintf(&b, ", visible since %d, acknowledged version %d", x.Visible, x.Baseline)
	}
	if x.Sent > 0 {
		fmt.Fprintf(&b, ", sent at %d: version %d, copies %d, packets %v", x.Sent, x.Version, x.Copies, x.Packets)
	}
	if x.Until > 0 {
		fmt.Fprintf(&b, ", held back until %d", x.Until)
	}
	b.WriteByte(')')
	return b.String()
}

// Explain returns the reason why the value of a field was, or was not, sent to a client in the last
// tick, and whether it has arrived. field is the field's path, such as "Pos.X". The name of a
// struct or array selects the field in it that changed last, an empty name the field of the object
// that changed last, and "(owner)" the object's owner.
//
// Explain computes the reason on request, from state that the room needs for the client anyway. The
// last tick is the tick of the newest snapshot: Explain ignores later edits. It returns an error if
// the field does not exist, or if the client has left or is not connected. It panics for a nil
// client, and on a client.
func (o *Object[S]) Explain(t *Tick, c *Client, field string) (Explanation, error) {
	r := t.server("Object.Explain")
	c.mustExist("Object.Explain")
	return r.explain(c, o.o, field)
}

func (r *Room) explain(c *Client, o *state.Object, field string) (Explanation, error) {
	switch _, in := r.e.Client(uint64(c.ID())); {
	case c.room != r || !in:
		return Explanation{}, fmt.Errorf("netloop: client %d is not in the room", c.ID())
	case !c.Connected():
		return Explanation{}, fmt.Errorf("netloop: client %d has lost its connection, or is about to: nothing is sent to it", c.ID())
	}
	fields := o.Class().FieldsNamed(field)
	if len(fields) == 0 {
		return Explanation{}, fmt.Errorf("netloop: class %q has no field %q; it has %s", o.Class().Name(), field, fieldNames(o.Class()))
	}
	f := o.LastChanged(fields)
	x := r.e.World().Explain(c.e.Peer(), o, f)
	e := Explanation{
		Reason: reasonOf[x.Why], Client: c.ID(), Object: o.ID().String(), Class: o.Class().Name(), Field: o.Class().FieldName(f),
		Tick: x.Tick, Changed: x.Changed, Visible: x.Visible, Baseline: x.Baseline,
		Sent: x.Sent, Version: x.Version, Copies: x.Copies, Packets: append([]uint64{}, x.Packets...), Until: x.Until,
	}
	if x.Why == netvar.WhyNoSnapshot || x.Why == netvar.WhyPackets || x.Why == netvar.WhyStreamFull {
		switch c.e.Waits() { // The client got no snapshot, or only a probe.
		case room.WaitsForSlot:
			e.Reason = ReasonSlotBusy
		case room.WaitsForWindow:
			e.Reason = ReasonWindowClosed
		}
	}
	return e, nil
}

func fieldNames(c *state.Class) string {
	var names []string
	for _, i := range c.FieldsNamed("") {
		names = append(names, c.FieldName(i))
	}
	return strings.Join(names, ", ")
}
