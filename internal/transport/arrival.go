package transport

import "time"

// ArrivalKind tells what an Arrival carries.
type ArrivalKind uint8

// The kinds of arrivals.
const (
	// Joined is pushed by the owner's own Admission.Joined.
	Joined ArrivalKind = 1 + iota
	// Gone is the last arrival of a session, exactly once: Closed says why.
	Gone
	// Acks carries acknowledgements of state packets (server).
	Acks
	// MessageArrived carries a Message, and what Decode made of it.
	MessageArrived
	// State carries one state packet (client).
	State
	// TimeSample carries the four timestamps of a time request (client).
	TimeSample
	// EpochMoved carries the room's new epoch (client).
	EpochMoved
	// OverloadChanged carries the server's level of overload (client).
	OverloadChanged
	// DigestRequest asks for digests in the next Value snapshots (server).
	DigestRequest
	// FullStateRequest asks for the full state (server).
	FullStateRequest
	// Record carries, in State, one record of state that came over the stream (client).
	Record
	// RecordsApplied acknowledges the records that went over the stream, up to the id Value
	// (server).
	RecordsApplied
	// Discarded tells of what meant nothing: empty frames, kinds that nobody knows, messages
	// that cannot be read. Value is as how many messages it counts (server).
	Discarded
	// TimeScaleChanged carries the line of scaled time that begins (client).
	TimeScaleChanged
	// Accepted says that the room has taken the client in, or back, and has had Value of its
	// reliable messages (client).
	Accepted
	// Received says that the peer has had Value of the reliable messages.
	Received
	// WillClose says that the server closes in Value ns at the latest (client).
	WillClose
	// Moved says that the client comes from another address now, the Text of Message (server).
	Moved
	// NoRoom carries the Message, without its payload, of a reliable one for which there was no
	// room, because too much of what its sender has sent waits for its turn (server).
	NoRoom
	// Inputs carries, in State, one packet of inputs (server).
	Inputs
	// InputsTold carries what became of the client's inputs (client).
	InputsTold
	// MoveAsked says that the client wants to move by a ticket, the Text of Message (server).
	MoveAsked
	// MoveTold says that the session has ended, and that another one may follow by a ticket, the
	// Text of Message (client).
	MoveTold
)

// Arrival is one event of a session, in the order in which it arrived.
type Arrival struct {
	Kind    ArrivalKind
	Session *Session
	At      time.Duration // when it arrived, by SessionConfig.Clock's timeline
	Message Message
	Size    int // of an encoded message, in bytes
	// Number is that of a reliable message among those of its connection, from 1.
	Number  uint64
	Method  any // what SessionConfig.Decode returned: the owner's declaration of the method
	Decoded any // and what it made of the message; for Joined the owner's own
	// Acks is valid until the inbox that it came from is swapped again.
	Acks []Range
	// State is one packet or record. It belongs to the receiver, but for Inputs, where it is
	// valid for as long as Acks are.
	State []byte
	T     [4]time.Duration // client sent, server received, server sent, client received
	Epoch Epoch
	// Overload is the one that begins.
	Overload Overload
	// TimeScale is the one that begins.
	TimeScale TimeScale
	Closed    *Closed
	Value     uint64
	// Status is that of InputsTold.
	Status *InputStatus
	// Held is what the arrival counts with in what its session has under way, of the server's.
	// Inbox.Each gives it back after the call, unless the owner has set it to 0 and gives it
	// back to Session.Held later.
	Held int
}

// InputStatus says which inputs of a client have come: that of the fixed step Newest, and those of
// the 16 before it, of which bit n is Newest - 1 - n. Early is how long before its deadline that of
// Newest came, Missed how many steps have run without theirs. Generation is that of the inputs.
type InputStatus struct {
	Newest     uint64
	Before     uint16
	Early      time.Duration
	Missed     uint64
	Generation uint8
}

// Range is a range of state packet ids, both ends included.
type Range struct{ First, Last uint64 }

// Epoch maps ticks to the server's monotonic time: Tick is due At.
type Epoch struct {
	Tick uint64
	At   time.Duration
}

// Overload is how much a server gives up while it cannot keep up: package overload names
// the levels, 0 is nothing. A snapshot is sent every SendEvery ticks.
type Overload struct {
	Level     uint8
	SendEvery uint32
}

// TimeScale says that scaled time runs Num/Den times as fast as game time, from that of
// Tick on, where it has come to At and Fraction/2⁶⁴ ns.
type TimeScale struct {
	Num, Den uint64
	Tick     uint64
	At       time.Duration
	Fraction uint64
}

// Message is one RPC, one question of a call or one answer to it.
type Message struct {
	Method   uint32
	Stage    uint8  // 1..7, 0 is unset
	Call     uint64 // 0 is one-way
	Reply    bool
	Code     uint32 // of an answer: why there is no result
	Text     string // of an answer without a result: why, for people
	Reliable bool
	Payload  []byte
	Tick     uint64 // to a client: hold it until the state has reached this tick; 0 is at once
}
