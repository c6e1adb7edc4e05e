package transport

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// The handshake, without I/O. A driver passes in frames and writes the frames returned.
//
//	client: Greeting                    server: Reception
//	Open   ── hello ──────────────────▶ Take, Handler.Tables
//	         if the schemas have different fingerprints:
//	Take   ◀───────────── schema_part ──
//	Take   ◀───────────── schema_part ──
//	  all parts have arrived: Adapt
//	       ── schema_accepted ────────▶ Take
//	         in both cases:
//	                                    Handler.Admit
//	Take   ◀───── welcome or refused ──
const (
	// maxTableParts bounds the frames that carry a server's tables, each of MaxFrame.
	maxTableParts = 16
	// tablePart is the number of bytes of the tables in one part: a frame less the fields and the
	// length around them.
	tablePart = MaxFrame - 16
	// MaxTables bounds a server's tables: 500 methods and 100 classes with many fields take half of
	// it. All parts and their lengths together fit into 256 KiB.
	MaxTables = maxTableParts * tablePart
	// tableDepth bounds the nesting of messages in tables: types can be as deep as a schema
	// permits.
	tableDepth = 64
)

// AppendTables appends the frames of a server's tables.
func AppendTables(dst []byte, t *netloopv1.SchemaTables) ([]byte, error) {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(t)
	if err != nil {
		return dst, err
	}
	if len(b) > MaxTables {
		return dst, fmt.Errorf("transport: schema has %d bytes, more than %d", len(b), MaxTables)
	}
	for size := len(b); ; {
		k := min(len(b), tablePart)
		part := &netloopv1.SchemaPart{Size: uint32(size), Data: b[:k]}
		// AppendFrame cannot fail here: a part fits a frame, and has no text that could be invalid
		// UTF-8.
		dst, _ = AppendFrame(dst, &netloopv1.Frame{Kind: &netloopv1.Frame_SchemaPart{SchemaPart: part}})
		if b = b[k:]; len(b) == 0 {
			return dst, nil
		}
	}
}

// Greeting is the client's half of one handshake.
type Greeting struct {
	Hello *netloopv1.Hello
	// Adapt gets the tables of a server with another fingerprint, before the client is admitted. It
	// returns a *Refusal or a *Closed if the client cannot play there. A nil Adapt refuses all
	// tables.
	Adapt func(*netloopv1.SchemaTables) error
	// Hold delays the hello: it is called once the connection is established, and the hello is sent
	// when Hold's argument is called, once and by any goroutine. A nil Hold does not delay it.
	Hold func(send func())
	// Limit bounds the handshake over a carrier in memory, which has no context. 0 is the carrier's
	// own limit.
	Limit time.Duration

	parts  int
	size   int
	tables []byte
	done   bool // the tables are accepted
}

// Open appends the client's first frame.
func (g *Greeting) Open(dst []byte) ([]byte, error) { return AppendHello(dst, g.Hello) }

// Take handles the server's next frame, without its length. It returns the bytes of the answer, if
// any, and the welcome when it has arrived. An error ends the handshake; [Greeting.Goodbye] then
// returns the reason with which to close the connection.
func (g *Greeting) Take(frame []byte) (answer []byte, w *netloopv1.Welcome, err error) {
	f, err := decodeFrame(frame)
	if err != nil {
		return nil, nil, &Closed{Code: CodeProtocol, Text: "server's answer is malformed"}
	}
	part, ok := f.Kind.(*netloopv1.Frame_SchemaPart)
	if !ok || len(frame) > MaxFrame {
		w, err = decodeAnswer(f)
		if err == nil && g.Reads() {
			return nil, nil, &Closed{Code: CodeProtocol, Text: "server's schema is truncated"}
		}
		return nil, w, err
	}
	whole, err := g.takePart(part.SchemaPart)
	if err != nil || !whole {
		return nil, nil, err
	}
	if err := g.adapt(); err != nil {
		return nil, nil, err
	}
	accepted := &netloopv1.Frame_SchemaAccepted{SchemaAccepted: &netloopv1.SchemaAccepted{}}
	answer, err = AppendFrame(nil, &netloopv1.Frame{Kind: accepted})
	return answer, nil, err
}

// takePart stores a part of the tables, and reports whether the tables are complete.
func (g *Greeting) takePart(p *netloopv1.SchemaPart) (whole bool, err error) {
	if g.parts++; g.parts == 1 {
		g.size = int(p.GetSize())
	}
	if g.done || g.size > MaxTables || g.parts > maxTableParts || int(p.GetSize()) != g.size || len(g.tables)+len(p.GetData()) > g.size {
		return false, &Closed{Code: CodeProtocol, Text: "server's schema parts are too large or inconsistent"}
	}
	g.tables = append(g.tables, p.GetData()...)
	return len(g.tables) == g.size, nil
}

func (g *Greeting) adapt() error {
	var t netloopv1.SchemaTables
	err := proto.UnmarshalOptions{DiscardUnknown: true, RecursionLimit: tableDepth}.Unmarshal(g.tables, &t)
	if err != nil {
		return &Closed{Code: CodeProtocol, Text: "server's schema is malformed"}
	}
	g.tables, g.done = nil, true
	if g.Adapt == nil {
		return &Refusal{Code: CodeSchemaMismatch, Text: "server has another schema"}
	}
	return g.Adapt(&t)
}

// Reads reports whether some parts of the tables have arrived and others are missing.
func (g *Greeting) Reads() bool { return g.parts > 0 && !g.done }

// Goodbye returns the reason with which a client closes the connection after an error of the
// handshake: the server's protocol error, the mismatch of the tables, or a timeout if the client
// has a seat. The server may have resumed the seat already, and CodeLeft would release it before
// the client's next attempt.
func (g *Greeting) Goodbye(err error) Closed {
	var closed *Closed
	var refusal *Refusal
	switch {
	case errors.As(err, &closed) && !closed.Remote:
		return Closed{Code: closed.Code, Text: clip(closed.Text)}
	case errors.Is(err, ErrFrameTooLarge):
		return Closed{Code: CodeProtocol, Text: ErrFrameTooLarge.Error()}
	case errors.As(err, &refusal) && refusal.Code == CodeSchemaMismatch && g.done:
		return Closed{Code: CodeSchemaMismatch, Text: clip(refusal.Text)}
	case errors.Is(err, context.DeadlineExceeded) && len(g.Hello.GetResume().GetToken()) > 0:
		return Closed{Code: CodeTimeout, Text: "server did not answer in time"}
	}
	return Closed{Code: CodeLeft}
}

// Reception is the server's half of one handshake.
type Reception struct {
	Handler Handler
	Stats   *Stats // counts malformed and unexpected frames

	hello *netloopv1.Hello // set once the client has been sent the tables
}

// Take handles the client's next frame, without its length. It returns the bytes of the answer, if
// any, and the hello when the client may be admitted. The driver sends an error that is a *Refusal
// to the client.
func (r *Reception) Take(frame []byte) (answer []byte, admit *netloopv1.Hello, err error) {
	if r.hello == nil {
		hello, err := DecodeHello(frame)
		if err != nil {
			r.Stats.Drop(DropHello, 1)
			return nil, nil, err
		}
		tables, err := r.Handler.Tables(hello)
		if err != nil || tables == nil {
			return nil, hello, err
		}
		r.hello = hello
		return tables, nil, nil
	}
	f, err := decodeFrame(frame)
	if _, ok := f.GetKind().(*netloopv1.Frame_SchemaAccepted); err != nil || !ok {
		r.Stats.Drop(DropHello, 1)
		return nil, nil, &Refusal{Code: CodeProtocol, Text: "second frame does not accept the schema"}
	}
	return nil, r.hello, nil
}

// Waits reports whether the client was sent the tables. If it then leaves without an answer, it
// could not use the tables.
func (r *Reception) Waits() bool { return r.hello != nil }
