package transport

import "time"

// ArrivalKind is the kind of an Arrival.
type ArrivalKind uint8

// The kinds of arrivals.
const (
	// Joined reports that the session has begun. The owner pushes it itself, in Admitted.Joined.
	Joined ArrivalKind = 1 + iota
	// Gone is the last arrival of a session, exactly once. Closed is the reason.
	Gone
	// Acks carries acknowledgements of state packets (server).
	Acks
	// MessageArrived carries a Message, and the result of Decode.
	MessageArrived
	// State carries one state packet (client).
	State
	// TimeSample carries the four timestamps of a time request (client).
	TimeSample
	// EpochMoved carries the room's new epoch (client).
	EpochMoved
	// OverloadChanged carries the server's level of overload (client).
	OverloadChanged
	// DigestRequest is a request for digests in the next Value snapshots (server).
	DigestRequest
	// FullStateRequest is a request for the full state (server).
	FullStateRequest
	// Record carries, in State, one state record that was received on the stream (client).
	Record
	// RecordsApplied acknowledges the state records sent on the stream, up to the id Value
	// (server).
	RecordsApplied
	// Discarded counts discarded data: empty frames, unknown kinds, unreadable messages. Value is
	// the number of messages that the data counts against the limits of the session (server).
	Discarded
	// TimeScaleChanged carries the new scale of scaled time (client).
	TimeScaleChanged
	// Accepted reports that the room has admitted or resumed the client, and has received Value of
	// its reliable messages (client).
	Accepted
	// Received reports that the peer has received Value of the reliable messages.
	Received
	// WillClose reports that the server closes in Value ns at the latest (client).
	WillClose
	// Moved reports that the client's address has changed to the Text of Message (server).
	Moved
	// NoRoom carries the Message, without its payload, of a reliable message that was dropped
	// because too much unprocessed data of its sender is held (server).
	NoRoom
	// Inputs carries, in State, one packet of inputs (server).
	Inputs
	// InputsTold carries the server's status of the client's inputs (client).
	InputsTold
	// MoveAsked reports that the client wants to move by a ticket, the Text of Message (server).
	MoveAsked
	// MoveTold reports that the session has ended, and that the client may start another one with a
	// ticket, the Text of Message (client). If Decoded is a Destination, the session continues, and
	// the ticket is for a room of that server.
	MoveTold
	// Mispredicted carries, in Value, the number of mispredictions since the client's join. Within
	// a session it rises (server).
	Mispredicted
)

// Arrival is one event of a session, in order of arrival.
type Arrival struct {
	Kind    ArrivalKind
	Session *Session
	At      time.Duration // time of arrival, by SessionConfig.Clock
	Message Message
	Size    int // of an encoded message, in bytes
	// Number is the number of a reliable message on its connection, from 1.
	Number  uint64
	Method  any // returned by SessionConfig.Decode: the owner's declaration of the method
	Decoded any // returned by SessionConfig.Decode: the message; for Joined the owner's own value
	// Acks is valid until the next swap of its inbox.
	Acks []Range
	// State is one packet or record. The receiver owns it. For Inputs, it is only valid as long as
	// Acks.
	State []byte
	T     [4]time.Duration // client sent, server received, server sent, client received
	Epoch Epoch
	// Overload is the new level.
	Overload Overload
	// TimeScale is the new scale.
	TimeScale TimeScale
	Closed    *Closed
	Value     uint64
	// Status is set for InputsTold.
	Status *InputStatus
	// Held is the number of bytes that the arrival adds to the unprocessed bytes of its session, at
	// the server. Inbox.Each subtracts it after the call. To keep the arrival for longer, the owner
	// sets Held to 0, and subtracts the bytes later with Session.Held.
	Held int
}

// InputStatus reports which inputs of a client were received: the input of the fixed step Newest,
// and for each bit n that is set in Before, the input of step Newest - 1 - n. Early is the time
// from the arrival of Newest's input to its deadline, Missed the number of steps that ran without
// their input. Generation is the generation of the inputs.
type InputStatus struct {
	Newest     uint64
	Before     uint16
	Early      time.Duration
	Missed     uint64
	Generation uint8
}

// Range is a range of state packet ids, both ends included.
type Range struct{ First, Last uint64 }

// Epoch maps ticks to the server's monotonic time: Tick is scheduled for At.
type Epoch struct {
	Tick uint64
	At   time.Duration
}

// Overload is the overload level of a server: package overload names the levels; 0 is none. A
// snapshot is sent every SendEvery ticks.
type Overload struct {
	Level     uint8
	SendEvery uint32
}

// TimeScale sets the speed of scaled time to Num/Den of game time, from Tick on. At Tick, scaled
// time is At plus Fraction/2⁶⁴ ns.
type TimeScale struct {
	Num, Den uint64
	Tick     uint64
	At       time.Duration
	Fraction uint64
}

// Message is one RPC, one request of a call or one answer to it.
type Message struct {
	Method   uint32
	Stage    uint8  // 1..7, 0 is unset
	Call     uint64 // 0: one-way
	Reply    bool
	Code     uint32 // of an answer without a result: the reason
	Text     string // of an answer without a result: the reason as a text
	Reliable bool
	Payload  []byte
	Tick     uint64 // to a client: deliver when the state has reached this tick; 0: at once
}
