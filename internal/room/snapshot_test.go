package room_test

import (
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/transport"
)

// longText does not fit into a packet.
type longText struct {
	Text string `net:"max=8000"`
}

var bareLong = netloop.NewClass[longText](bareSchema, "long")

// While a client's stream is filled beyond half of its limit, records that do not fit into a
// packet are held back, and counted.
func TestRecordsAreHeldBackWhileTheStreamIsBehind(t *testing.T) {
	b := newBare(t, func(*netloop.Room) {})
	s := b.join()
	b.step()
	carry(s, nil)
	for range 10 { // 150 kB
		s.Send(transport.Message{Method: 1, Reliable: true, Payload: make([]byte, 15_000)})
	}
	b.step()
	carry(s, nil)
	if err := b.inspect(func(t *netloop.Tick) { bareLong.Spawn(t, longText{string(make([]byte, 8000))}) }); err != nil {
		t.Fatal(err)
	}
	stats := b.room.World().Stats()
	b.step() // a fifth snapshot would find the window closed
	carry(s, nil)
	b.room.Report()
	if stats.Large != 0 || stats.WaitedLarge != 1 || !b.scraped(`netloop_snapshot_records_waited_total{reason="stream"} 1`) {
		t.Errorf("%d sent, %d held back", stats.Large, stats.WaitedLarge)
	}
	s.AppendStream(nil, 1<<20)
	b.step()
	if stats.Large != 1 {
		t.Error("not sent when the stream was free again")
	}
	if n := len(s.AppendStream(nil, 1<<20)); n < 8000 {
		t.Errorf("%d bytes left", n)
	}
}

// Changes without Edit are named, because no other output explains why they are not sent.
func TestExplainUnnoticed(t *testing.T) {
	b := newBare(t, func(*netloop.Room) {})
	b.join()
	var kept *longText
	var o *netloop.Object[longText]
	if err := b.inspect(func(t *netloop.Tick) { o = bareLong.Spawn(t, longText{}); kept = o.Edit(t) }); err != nil {
		t.Fatal(err)
	}
	b.step()
	kept.Text = "nobody sees it"
	b.step()
	if err := b.inspect(func(tick *netloop.Tick) {
		c, _ := tick.Client(1)
		if x, err := o.Explain(tick, c, "Text"); err != nil || x.Reason != netloop.ReasonUnnoticed {
			t.Error(x, err)
		}
	}); err != nil {
		t.Fatal(err)
	}
}

// newSpecks returns a room that spawns 100 objects in each tick, both ends of a connection, and the
// client's inbox.
func newSpecks(t *testing.T) (b *bare, from, to *testConn, inbox *transport.Inbox) {
	t.Helper()
	type speck struct{ N uint8 }
	s := netloop.NewSchema("specks", 1, 0)
	k := netloop.NewClass[speck](s, "speck")
	b = newBareOf(t, netloop.Config{}, oddGame{s, func(r *netloop.Room) {
		r.On(netloop.Update, "test.spawn", func(tick *netloop.Tick) {
			for n := range 100 {
				k.Spawn(tick, speck{uint8(n)})
			}
		})
	}})
	adm, err := b.server.Handler.Admit(t.Context(), hello(s), "here")
	if err != nil {
		t.Fatal(err)
	}
	from, to = newTestConn(adm), new(testConn)
	inbox = transport.NewInbox(0, nil)
	to.Session, to.Link = transport.NewSession(transport.SessionConfig{Client: true, Inbox: inbox})
	return b, from, to, inbox
}

// A client that does not acknowledge is probed from time to time, with a single packet of at most
// 100 bytes regardless of its missing changes.
func TestAClosedWindowIsProbedWithLittle(t *testing.T) {
	b, from, to, inbox := newSpecks(t)
	var batches [][]int // the sizes of the packets, of each tick with any
	for b.tick < 120 {
		b.tick++
		in := b.room.Timeline().Input(b.tick)
		in.Start = in.GameTime
		if err := b.room.Step(in); err != nil {
			t.Fatal(err)
		}
		carry(from, to)
		var sizes []int
		for _, a := range inbox.Swap(nil) {
			if a.State != nil {
				sizes = append(sizes, len(a.State))
			}
		}
		if sizes != nil {
			batches = append(batches, sizes)
		}
	}
	if len(batches) < 6 {
		t.Fatalf("the packets have sizes %v", batches)
	}
	for _, probe := range batches[4:] { // The window takes four snapshots.
		if len(probe) != 1 || probe[0] > 100 || probe[0] < 50 {
			t.Errorf("a probe has packets of %v bytes", probe)
		}
	}
}

// A client is sent fewer bytes if its acknowledgements show a queue.
func TestAFullLinkGetsFewerBytes(t *testing.T) {
	b, from, to, inbox := newSpecks(t)
	packets := []uint64{0} // sent up to a tick
	var bytes [7]int       // of snapshots, by a quarter of a second
	for b.tick < 105 {
		if late := b.tick / 60 * 6; b.tick > late { // A queue of six ticks after a second.
			b.push(from, transport.Arrival{Kind: transport.Acks, Acks: []transport.Range{{First: 1, Last: packets[b.tick-late]}}})
		}
		b.tick++
		in := b.room.Timeline().Input(b.tick)
		in.Start = in.GameTime
		if err := b.room.Step(in); err != nil {
			t.Fatal(err)
		}
		carry(from, to)
		sent := packets[len(packets)-1]
		for _, a := range inbox.Swap(nil) {
			if a.State != nil {
				bytes[(b.tick-1)/15] += len(a.State)
				sent++
			}
		}
		packets = append(packets, sent)
	}
	if last := bytes[6]; bytes[3] < 4000 || last > bytes[3]/2 || last < 500 {
		t.Errorf("bytes of each quarter of a second: %v", bytes)
	}
}
