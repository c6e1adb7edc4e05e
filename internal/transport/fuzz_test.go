package transport

import (
	"bytes"
	"context"
	"errors"
	"math"
	"testing"

	"google.golang.org/protobuf/proto"

	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// FuzzDatagram: on any input neither end panics, and the generated code accepts all data that the
// walker accepts, with equal values (apart from messages, which are judged one by one).
func FuzzDatagram(f *testing.F) {
	f.Fuzz(func(t *testing.T, b []byte) {
		server, client := pair(SessionConfig{})
		for _, e := range []*end{server, client} {
			e.ReceiveDatagram(1<<40, bytes.Clone(b))
			e.ReceiveDatagram(1<<40, bytes.Clone(b))
			checkArrivals(t, e.arrivals())
			if e.stats.DatagramsIn.Load() != 2 {
				t.Fatal("not counted")
			}
			e.appendDatagram(nil, 0)
		}
		d, err := parseDatagram(b)
		if err != nil {
			return
		}
		var p netloopv1.Datagram
		if proto.Unmarshal(b, &p) != nil {
			return // A message in it is malformed.
		}
		if p.Number != d.number || !bytes.Equal(p.State, d.state) || (p.Acks != nil) != (d.acks != nil) {
			t.Fatalf("walked %+v, decoded %v", d, &p)
		}
		if d.hasReply && uint64(d.reply[2]) != p.TimeReply.SentNs {
			t.Fatalf("walked %+v, decoded %v", d, &p)
		}
	})
}

// checkArrivals checks the invariants of arrivals for any input.
func checkArrivals(t *testing.T, as []Arrival) {
	t.Helper()
	for _, a := range as {
		for i, r := range a.Acks {
			if r.First > r.Last || i > 0 && r.Last >= a.Acks[i-1].First {
				t.Fatal("ranges", a.Acks)
			}
		}
		if len(a.Acks) > MaxAckRanges || a.Message.Stage > numStages || len(a.Message.Text) > MaxText {
			t.Fatalf("arrival %+v", a)
		}
	}
}

// FuzzMessage: the walker and the generated code read a message alike.
func FuzzMessage(f *testing.F) {
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := parseMessage(b)
		var p netloopv1.Message
		perr := proto.Unmarshal(b, &p)
		if perr != nil {
			if err == nil {
				t.Fatalf("walked %+v, but %v", m, perr)
			}
			return
		}
		if errors.Is(err, errStage) || errors.Is(err, errText) {
			return
		}
		if err != nil || uint32(p.Code) != m.Code || p.Method != m.Method || p.Call != m.Call || p.Reply != m.Reply ||
			p.Text != m.Text || !bytes.Equal(p.Payload, m.Payload) || int32(p.Stage) != int32(m.Stage)*stageStep {
			t.Fatalf("walked %+v (%v), decoded %v", m, err, &p)
		}
		if again, err := parseMessage(appendMessage(nil, &m)); err != nil || !bytes.Equal(again.Payload, m.Payload) || again.Call != m.Call {
			t.Fatalf("%+v came back as %+v: %v", m, again, err)
		}
	})
}

// FuzzStream: either end reads the same, however the bytes are cut.
func FuzzStream(f *testing.F) {
	f.Fuzz(func(t *testing.T, b []byte, step uint16) {
		for _, client := range []bool{false, true} {
			whole, cut := newEnd(client, SessionConfig{}), newEnd(client, SessionConfig{})
			want := whole.ReceiveStream(0, b)
			var got error
			for rest := b; len(rest) > 0 && got == nil; {
				n := min(len(rest), int(step)%97+1)
				got = cut.ReceiveStream(0, rest[:n])
				rest = rest[n:]
			}
			if (want == nil) != (got == nil) {
				t.Fatalf("whole: %v, cut: %v", want, got)
			}
			var c *Closed
			if want != nil && (!errors.As(want, &c) || len(c.Text) > MaxText) {
				t.Fatal(want)
			}
			if len(cut.leg.Load().stream) > MaxFrame+maxLengthPrefix {
				t.Fatal("buffered", len(cut.leg.Load().stream))
			}
			a, z := whole.arrivals(), cut.arrivals()
			checkArrivals(t, a)
			if len(a) != len(z) {
				t.Fatalf("whole: %v, cut: %v", kinds(a), kinds(z))
			}
			for i := range a {
				if a[i].Kind != z[i].Kind || !bytes.Equal(a[i].Message.Payload, z[i].Message.Payload) || a[i].Epoch != z[i].Epoch {
					t.Fatalf("whole: %+v, cut: %+v", a[i], z[i])
				}
			}
		}
	})
}

// FuzzHandshake: a first frame is a hello, a welcome, or a typed error.
func FuzzHandshake(f *testing.F) {
	f.Fuzz(func(t *testing.T, b []byte) {
		frame, rest, err := CutFrame(b, MaxHandshake)
		read, rerr := ReadFrame(bytes.NewReader(b), MaxHandshake)
		if (frame == nil) != (rerr != nil) || !bytes.Equal(frame, read) || errors.Is(err, ErrFrameTooLarge) != errors.Is(rerr, ErrFrameTooLarge) {
			t.Fatalf("cut %d bytes (%v), read %d (%v)", len(frame), err, len(read), rerr)
		}
		if frame == nil {
			return
		}
		if len(frame)+len(rest) >= len(b) {
			t.Fatal("the length is missing")
		}
		var refusal *Refusal
		var closed *Closed
		if h, err := DecodeHello(frame); err != nil && !errors.As(err, &refusal) || err == nil && len(h.Room) > maxHandshakeText {
			t.Fatal(h, err)
		}
		g := Greeting{}
		if _, w, err := g.Take(frame); err == nil && w.GetTickRate().GetDen() == 0 && g.parts == 0 || err != nil && !errors.As(err, &refusal) && !errors.As(err, &closed) {
			t.Fatal(w, err)
		}
	})
}

// FuzzGreeting: on any answer of a server, in any number of frames, the client ends with a welcome
// or a typed error, and holds no more bytes than MaxTables.
func FuzzGreeting(f *testing.F) {
	f.Fuzz(func(t *testing.T, b []byte) {
		adapted := 0
		g := Greeting{Adapt: func(*netloopv1.SchemaTables) error { adapted++; return nil }}
		for {
			frame, rest, err := CutFrame(b, MaxHandshake)
			if err != nil || frame == nil {
				return
			}
			b = rest
			answer, w, err := g.Take(frame)
			var refusal *Refusal
			var closed *Closed
			if err != nil && !errors.As(err, &refusal) && !errors.As(err, &closed) || adapted > 1 || len(g.tables) > MaxTables {
				t.Fatal(err, adapted, len(g.tables))
			}
			if (answer != nil) != (err == nil && w == nil && g.done) {
				t.Fatalf("it answers %x to %x", answer, frame)
			}
			if err != nil {
				if bye := g.Goodbye(err); len(bye.Text) > MaxText {
					t.Fatal(bye)
				}
			}
			if err != nil || w != nil {
				return
			}
		}
	})
}

// nobodysTables is a Handler that sends these frames to every client.
type nobodysTables []byte

func (n nobodysTables) Tables(*netloopv1.Hello) ([]byte, error) { return n, nil }
func (n nobodysTables) Admit(context.Context, *netloopv1.Hello, string) (*Admitted, error) {
	return nil, errors.New("nobody")
}

// FuzzReception: on any input a client is admitted after a hello and one acceptance, or refused.
func FuzzReception(f *testing.F) {
	f.Fuzz(func(t *testing.T, b []byte) {
		r := Reception{Handler: nobodysTables{1}, Stats: new(Stats)}
		for n := 0; ; n++ {
			frame, rest, err := CutFrame(b, MaxHandshake)
			if err != nil || frame == nil {
				return
			}
			b = rest
			answer, hello, err := r.Take(frame)
			var refusal *Refusal
			if err != nil && !errors.As(err, &refusal) || (err == nil) != (r.Stats.Dropped(DropHello) == 0) {
				t.Fatal(err)
			}
			if (answer != nil) != (err == nil && n == 0) || (hello != nil) != (err == nil && n == 1) {
				t.Fatalf("frame %d: answer %x, hello %v", n, answer, hello)
			}
			if err != nil || hello != nil {
				return
			}
		}
	})
}

// FuzzAcks: accepted ranges are within their bounds and survive encoding.
func FuzzAcks(f *testing.F) {
	f.Fuzz(func(t *testing.T, b []byte) {
		ranges, err := parseAcks(b, nil)
		if err != nil {
			return
		}
		if len(ranges) == 0 || len(ranges) > MaxAckRanges || ranges[0].Last-ranges[len(ranges)-1].First >= AckWindow {
			t.Fatal(ranges)
		}
		var set ackSet
		for _, r := range ranges {
			for n := r.Last - r.First + 1; n > 0; n-- {
				set.add(r.First + n - 1)
			}
		}
		d, err := parseDatagram(set.appendField(appendNumber(nil, math.MaxUint64)))
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseAcks(d.acks, nil)
		if err != nil || len(again) == 0 || again[0].Last != ranges[0].Last {
			t.Fatal(ranges, again, err)
		}
	})
}
