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

// Tick is one record: every outside fact of a tick, in the order in which the room asks for
// them, and what came of it.
type Tick struct {
	Input loop.Input
	// Drain says that the room was told, before this tick, that it ends in DrainLimit.
	Drain      bool
	DrainLimit time.Duration
	// Prices are those of messages that have changed since the tick before.
	Prices []rpcqueue.Price
	// Links are the clients whose facts have changed since the tick before.
	Links    []Link
	Arrivals []Arrival
	Posts    []Post
	Results  []Result
	// Busy are the clients whose slot was taken when their snapshot was due.
	Busy []uint64
	// Unrecorded names what entered the room besides. From here on a replay may differ.
	Unrecorded []string
	// State is the digest of all captured objects, Sent that of all that left.
	State, Sent uint64
}

// Link is what a client's link was known to do at the poll.
type Link struct {
	Client uint64
	Conn   uint64 // of the client's connections: in the tick of a return there are two
	Facts  transport.LinkFacts
}

// Arrival is one arrival of the inbox.
type Arrival struct {
	Kind     transport.ArrivalKind
	Client   uint64
	Conn     uint64 // of the client's connections
	At       time.Duration
	Message  transport.Message // Payload is the decoded message, encoded anew
	Decoded  bool              // Payload was decoded; otherwise it is as it came
	Acks     []transport.Range
	Closed   *transport.Closed
	Value    uint64
	State    []byte    // of inputs, as they came
	Entrance *Entrance // of Joined
}

// Entrance is how a client came in, or back.
type Entrance struct {
	Join      []byte // a value that the owner knows; nil: it came back by itself
	Resumable bool
	Received  uint64
	Kept      bool
	Addr      string
	Instead   uint64 // the dropped client that leaves for it; 0: none
}

// Post is a message that another goroutine of the server posted.
type Post struct {
	Method uint32
	Stage  uint8
	Msg    []byte  // a value
	From   *Sender // the room that has sent it; nil: none has
}

// Sender is a room that has sent a message.
type Sender struct{ Room, Kind string }

// Result is what asynchronous work came to.
type Result struct {
	Work  uint64 // its number, from 1
	Value []byte // a value
	Err   *Error
	Code  uint32 // of an error that is a refusal: Err.Text is what the client may read
}

// AppendTick appends a tick's record.
func AppendTick(dst []byte, t *Tick) ([]byte, error) { return AppendValue(dst, t) }

// ReadTick reads what AppendTick wrote. It never panics.
func ReadTick(b []byte, t *Tick) error {
	*t = Tick{}
	if err := ReadValue(b, t); err != nil {
		return fmt.Errorf("a tick cannot be read: %w", err)
	}
	return nil
}

// Layout identifies the fields of a Tick and of all types in it: a recording of another
// layout would be read as something else.
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
		for i := range t.NumField() {
			f := t.Field(i)
			fmt.Fprintf(b, " %s ", f.Name)
			describe(b, f.Type, depth+1)
		}
		b.WriteString(";")
	}
}
