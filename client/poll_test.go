package client

import (
	"slices"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// An invalid record ends the connection: a stream cannot resend.
func TestMalformedRecordClosesTheConnection(t *testing.T) {
	r := newJoined(t)
	r.arrives(transport.Arrival{Kind: transport.Record, State: []byte{1, 2, 3}})
	if why, closed := r.conn.session.Cause(); !closed || why.Code != transport.CodeProtocol || r.stats.Malformed != 1 || r.stats.Records != 0 {
		t.Errorf("closed: %v with %+v, %d counted, %d taken", closed, why, r.stats.Malformed, r.stats.Records)
	}
}

// All arrivals are counted: packets in time and too late, invalid and lost ones, and whole
// snapshots with the time of their newest packet.
func TestArrivalsAreCounted(t *testing.T) {
	r := newJoined(t)
	s := r.states(600)
	var snapshots []Snapshot
	r.OnSnapshot(func(s Snapshot) { snapshots = append(snapshots, s) })
	first, second, third := s.at(1, 5*ms), s.at(2, 20*ms), s.at(3, 30*ms)
	if len(first) != 2 || len(second) != 2 || len(third) != 2 {
		t.Fatalf("%d, %d and %d packets", len(first), len(second), len(third))
	}
	size := func(all []transport.Arrival) int { return len(all[0].State) + len(all[1].State) }
	first[0].At = 7 * ms
	r.arrives(first...)
	r.arrives(third[0])
	if st := r.Stats(); st.Packets != 3 || st.Snapshots != 1 || st.Lost != 2 || st.Stale != 0 || st.Applied != 3 {
		t.Errorf("after one and a half snapshot: %+v", st)
	}
	r.arrives(second...)
	r.arrives(third[1])
	want := []Snapshot{{1, 7 * ms, size(first)}, {3, 30 * ms, size(third)}}
	if !slices.Equal(snapshots, want) {
		t.Errorf("told of %v, want %v", snapshots, want)
	}
	if st := r.Stats(); st.Packets != 4 || st.Snapshots != 2 || st.Lost != 0 || st.Stale != 2 || st.HeldBack != 0 {
		t.Errorf("when the late ones have come: %+v", st)
	}
	r.arrives(transport.Arrival{Kind: transport.State, State: []byte{1}})
	fourth := s.at(4, 0)
	r.arrives(fourth...)
	if st := r.Stats(); st.Malformed != 1 || st.Packets != 6 || r.receiver.losses.received != 9 {
		t.Errorf("with one that makes no sense: %+v, %d have come", st, r.receiver.losses.received)
	}
}

// The server announces its send rate during overload: the missing snapshots do not count as held
// back.
func TestAnOverloadedServersPeriodIsItsOwn(t *testing.T) {
	r := newJoined(t)
	s := r.states(1)
	var levels []netloop.Overload
	r.OnOverload(func(level netloop.Overload) { levels = append(levels, level) })
	tell := func(level uint8, every uint32) {
		r.arrives(transport.Arrival{Kind: transport.OverloadChanged, Overload: transport.Overload{Level: level, SendEvery: every}})
	}
	r.arrives(s.at(1, 0)...)
	r.arrives(s.at(4, 0)...)
	if held := r.Stats().HeldBack; held != 2 {
		t.Errorf("of four ticks with two snapshots %d were held back", held)
	}
	tell(1, 4)
	tell(1, 4)
	r.arrives(s.at(8, 0)...)
	r.arrives(s.at(12, 0)...)
	if held := r.Stats().HeldBack; held != 2 {
		t.Errorf("of every fourth tick's snapshots %d were held back", held-2)
	}
	tell(200, 4)
	tell(0, 1)
	if want := []netloop.Overload{1, netloop.OverloadRefusing, 0}; !slices.Equal(levels, want) || r.Overload() != 0 {
		t.Errorf("told of the levels %v, want %v, and it is %v", levels, want, r.Overload())
	}
}

// A message that waits for its state runs with it, or two seconds later without it; other messages
// overtake it.
func TestAMessageWaitsForItsState(t *testing.T) {
	r := newJoined(t)
	var ran []uint64
	Handle(r.Client, rigWords, func(_ *netloop.Tick, m rigWord) { ran = append(ran, m.N) })
	s := r.states(1)
	r.arrives(s.at(1, 0)...)
	r.arrives(word(1, 2), word(2, 0), word(3, 1))
	if !slices.Equal(ran, []uint64{2, 3}) || r.Stats().Held != 1 {
		t.Errorf("ran %v, %d wait", ran, r.Stats().Held)
	}
	r.arrives(s.at(2, 0)...)
	if !slices.Equal(ran, []uint64{2, 3, 1}) || r.Stats().Early != 0 {
		t.Errorf("with the state ran %v, %d too early", ran, r.Stats().Early)
	}
	r.arrives(word(4, 50))
	r.frame(11900 * ms)
	if len(ran) != 3 {
		t.Errorf("119 ticks later ran %v", ran)
	}
	if r.frame(100 * ms); len(ran) != 4 || r.Stats().Early != 1 {
		t.Errorf("120 ticks later ran %v, %d too early", ran, r.Stats().Early)
	}
	r.arrives(word(5, 500), transport.Arrival{Kind: transport.Gone, Closed: &transport.Closed{Code: netloop.CodeGame, Text: "bye"}})
	if len(ran) != 5 || r.Closed() == nil || r.Closed().Code != netloop.CodeGame || r.Closed().Text != "bye" {
		t.Errorf("at the end ran %v, closed with %v", ran, r.Closed())
	}
}

// A message for a method without a handler, or unknown to this build, is counted.
func TestMessagesThatCannotRunAreCounted(t *testing.T) {
	r := newJoined(t)
	unknown := word(1, 0)
	unknown.Message.Method = 60_000
	r.arrives(word(1, 0), word(2, 0), unknown)
	Handle(r.Client, rigWords, func(*netloop.Tick, rigWord) {})
	r.arrives(word(3, 0))
	if s := r.Stats(); s.Rejected != 2 || s.Unknown != 1 {
		t.Errorf("%d rejected, %d unknown", s.Rejected, s.Unknown)
	}
}

// A client plays once all of its first state has arrived, and keeps playing.
func TestAClientPlaysWhenItsStateIsThere(t *testing.T) {
	r := newJoined(t)
	var phases []Phase
	r.OnState(func(s State) { phases = append(phases, s.Phase) })
	s := r.states(900)
	first := s.at(1, 0)
	if r.arrives(first[0]); r.State().Phase != Loading {
		t.Errorf("with a part of its state it is %v", r.State().Phase)
	}
	r.arrives(first[1])
	r.arrives(s.at(2, 0)...)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	r.conn.setState(r.State()) // The same is no news.
	if want := []Phase{Playing, Closed}; !slices.Equal(phases, want) {
		t.Errorf("it was %v, want %v", phases, want)
	}
	if r.arrives(); r.State().Phase != Closed {
		t.Errorf("after its end it is %v", r.State().Phase)
	}
}

// Before any state has arrived it has no age; the tick of the very first packet may be any.
func TestAStateHasAnAgeOnceItIsThere(t *testing.T) {
	r := newJoined(t)
	if r.frame(time.Second); r.Stats().Age != 0 {
		t.Errorf("without state its age is %v", r.Stats().Age)
	}
	r.arrives(r.states(1).at(1, 0)...)
	if r.Stats().Age != time.Second {
		t.Errorf("a second after the first tick its age is %v", r.Stats().Age)
	}
	const late = 1<<33 + 5
	r = newRig(t)
	hz := &netloopv1.Rate{Num: 10, Den: 1}
	r.connect(&netloopv1.Welcome{
		Protocol: 1, ClientId: 1, TickRate: hz, FixedRate: hz, SendEvery: 1, Epoch: &netloopv1.Epoch{Tick: late},
	})
	s := r.states(1)
	s.world.Capture(late)
	if r.arrives(s.at(late+1, 0)...); r.Stats().Applied != late+1 {
		t.Errorf("the state of tick %d is taken for that of tick %d", uint64(late+1), r.Stats().Applied)
	}
}

// Changes of a class are computed only while it has watchers.
func TestChangesAreToldOnlyToWatchers(t *testing.T) {
	r := newJoined(t)
	s := r.states(1)
	r.arrives(s.at(1, 0)...)
	told := func(tick uint64) int {
		if _, err := r.replica.Apply(s.at(tick, 0)[0].State); err != nil {
			t.Fatal(err)
		}
		return len(r.replica.Events())
	}
	without := told(2)
	stop := Watch(r.Client, rigPlaces, Watcher[rigPlace]{Change: func(*netloop.Tick, *netloop.Object[rigPlace], rigPlace) {}})
	with := told(3)
	stop()
	if after := told(4); without != 0 || with != 1 || after != 0 {
		t.Errorf("%d changes before, %d with and %d after a watcher, want 0, 1 and 0", without, with, after)
	}
}

// The round trip is that of the network alone: the server's time for the answer does not count.
func TestTimeSamplesMeasureTheNetwork(t *testing.T) {
	r := newJoined(t)
	r.frame(10 * ms)
	for range 8 {
		r.arrives(transport.Arrival{
			Kind: transport.TimeSample, T: [4]time.Duration{ms, 5*time.Second + 4*ms, 5*time.Second + 6*ms, 10 * ms},
		})
	}
	if s := r.Stats(); s.RTT != 7*ms || !s.Synced {
		t.Errorf("the round trip takes %v; synchronised: %v", s.RTT, s.Synced)
	}
	if now := r.time.server(10 * ms); now != 5*time.Second+9500*time.Microsecond {
		t.Errorf("the server's time is %v", now)
	}
}
