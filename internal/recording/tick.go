package recording

import (
	"fmt"
	"hash/crc64"
	"reflect"
	"strings"
	"time"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/transport"
)

// Tick is one record: each outside fact of a tick, in the order in which the room reads them, and
// digests of the results.
type Tick struct {
	Input loop.Input
	// Drain reports that the room was told before this tick to end within DrainLimit.
	Drain      bool
	DrainLimit time.Duration
	// Prices are the prices of messages that have changed since the tick before.
	Prices []rpcqueue.Price
	// Links are the facts of clients' links that have changed since the tick before.
	Links    []Link
	Arrivals []Arrival
	Posts    []Post
	Results  []Result
	Commands []Command
	// Busy are the ids of the clients whose slot for snapshots was not free when their snapshot was
	// due.
	Busy []uint64
	// Unrecorded names effects on the room in this tick that are not recorded. From this tick on a
	// replay may differ.
	Unrecorded []string
	// State is the digest of all captured objects, and Sent the digest of all sent data.
	State, Sent uint64
	// Changes are digests of the captured changes, which name a value that differs: see
	// netvar.World.NameDifference.
	Changes []byte
}

// Link holds the facts of a client's link at the poll.
type Link struct {
	Client uint64
	Conn   uint64 // number of the client's connection: in the tick of a resume there are two
	Facts  transport.LinkFacts
}

// Arrival is one arrival of the inbox.
type Arrival struct {
	Kind     transport.ArrivalKind
	Client   uint64
	Conn     uint64 // number of the client's connection
	At       time.Duration
	Message  transport.Message // Payload is the decoded message, encoded anew
	Decoded  bool              // Payload was decoded; otherwise it is unchanged
	Acks     []transport.Range
	Closed   *transport.Closed
	Value    uint64
	State    []byte    // packet of inputs, unchanged
	Entrance *Entrance // set for the kind Joined
}

// Entrance records how a client joined or resumed.
type Entrance struct {
	Join      []byte // encoded by the owner; nil: it resumed by itself
	Resumable bool
	Received  uint64
	Kept      bool
	Travels   bool // it can move to another server
	Addr      string
	Instead   uint64 // the dropped client that loses its seat to this client; 0: none
}

// Post is a message that another goroutine of the server posted.
type Post struct {
	Method uint32
	Stage  uint8
	Msg    []byte  // encoded by AppendValue
	From   *Sender // the room that has sent it; nil: none
}

// Sender is the sending room of a message.
type Sender struct{ Room, Kind string }

// Command is a command to the room, of an operator or of another server.
type Command struct {
	Kind   CommandKind
	Client uint64 // of Kick
	Code   uint32 // of Kick: the reason as a code, and as a text for the client
	Text   string
	System string // name of the system or group of Disable and Enable
}

// CommandKind is the kind of a Command.
type CommandKind uint8

// The kinds of commands.
const (
	Kick CommandKind = 1 + iota
	Disable
	Enable
	Lock
	Unlock
	Arrived  // a client has arrived at another server; Text is the number of its move
	NameLost // another server has opened a room of the room's name
)

// Result is the result of asynchronous work.
type Result struct {
	Work  uint64 // its number, from 1
	Value []byte // encoded by AppendValue
	Err   *Error
	Code  uint32 // of an error that is a refusal: Err.Text is the text for the client
}

// AppendTick appends a tick's record.
func AppendTick(dst []byte, t *Tick) ([]byte, error) { return AppendValue(dst, t) }

// ReadTick decodes a tick's record. It never panics.
func ReadTick(b []byte, t *Tick) error {
	*t = Tick{}
	if err := ReadValue(b, t); err != nil {
		return fmt.Errorf("tick cannot be read: %w", err)
	}
	return nil
}

// Layout identifies the fields of a Tick and of all types in it, because a recording of another
// layout would be decoded wrongly.
func Layout() uint64 {
	var b strings.Builder
	describe(&b, reflect.TypeFor[Tick](), 0)
	return crc64.Checksum([]byte(b.String()), crcTable)
}

var crcTable = crc64.MakeTable(crc64.ECMA)

func describe(b *strings.Builder, t reflect.Type, depth int) {
	b.WriteString(t.Kind().String())
	if t == timeType || depth > maxDepth {
		b.WriteString(t.String())
		return
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Pointer, reflect.Array:
		describe(b, t.Elem(), depth+1)
	case reflect.Map:
		describe(b, t.Key(), depth+1)
		describe(b, t.Elem(), depth+1)
	case reflect.Struct:
		for f := range t.Fields() {
			fmt.Fprintf(b, " %s ", f.Name)
			describe(b, f.Type, depth+1)
		}
		b.WriteString(";")
	}
}
