package room_test

import (
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/transport"
)

// longText fits no packet.
type longText struct {
	Text string `net:"max=8000"`
}

var bareLong = netloop.NewClass[longText](bareSchema, "long")

// While more than half of what may wait for a client's stream does, records that fit no packet
// are held back, and counted.
func TestRecordsAreHeldBackWhileTheStreamIsBehind(t *testing.T) {
	b := newBare(t, func(*netloop.Room) {})
	s := b.join()
	b.step()
	carry(s, nil)
	for range 20 { // 300 kB
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

// What was changed behind the runtime's back is named: nothing else would tell why it is not sent.
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
