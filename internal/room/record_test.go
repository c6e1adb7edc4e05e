package room_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/clock"
	"github.com/netloop/netloop/internal/recording"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/transport"
)

// A replayed room is told of its end between the same two ticks, with the same limit.
func TestADrainIsReplayed(t *testing.T) {
	var told []time.Duration
	game := bareGame(func(r *netloop.Room) {
		r.OnDrain(func(_ *netloop.Tick, left time.Duration) { told = append(told, left) })
	})
	var file bytes.Buffer
	b := newBareAs(t, netloop.Config{Record: &file}, game)
	b.step()
	if err := b.room.Shutdown.Drain(3 * time.Second); err != nil {
		t.Fatal(err)
	}
	b.step()
	b.step()
	told = nil
	p, err := netloop.NewReplay(netloop.Config{}, game, bytes.NewReader(file.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	for tick := 1; ; tick++ {
		_, err := p.Step()
		if errors.Is(err, io.EOF) {
			break
		}
		drained := tick > 1
		if err != nil || drained != (len(told) == 1) || drained && told[0] != 3*time.Second {
			t.Fatalf("tick %d: the game was told of %v, %v", tick, told, err)
		}
	}
}

// The errors of work are the same in a replay: their text, the results of errors.Is, and the code
// of a refusal, if it has one for clients.
func TestErrorsOfWorkAreReplayed(t *testing.T) {
	errNone := errors.New("none is there")
	fails := []error{
		nil, errNone, fmt.Errorf("looking: %w", errNone), errors.Join(errNone, context.DeadlineExceeded),
		transport.Refuse(transport.CodeGame, "not %s", "you"),
	}
	var seen []string
	game := bareGame(func(r *netloop.Room) {
		r.On(netloop.Update, "ask", func(tick *netloop.Tick) {
			if tick.Number() > uint64(len(fails)) {
				return
			}
			err := fails[tick.Number()-1]
			netloop.Go(tick, func(context.Context) (int, error) { return 7, err }, func(_ *netloop.Tick, n int, err error) {
				var refusal *transport.Refusal
				seen = append(seen, fmt.Sprint(n, err, errors.Is(err, errNone), errors.As(err, &refusal), refusal))
			})
		})
	})
	var file bytes.Buffer
	b := newBareAs(t, netloop.Config{Record: &file}, game)
	for range len(fails) + 1 {
		b.step()
		b.room.WaitForWork()
	}
	want := seen
	seen = nil
	p, err := netloop.NewReplay(netloop.Config{}, game, bytes.NewReader(file.Bytes()))
	for err == nil {
		_, err = p.Step()
	}
	if !errors.Is(err, io.EOF) || len(want) != len(fails) || !slices.Equal(seen, want) {
		t.Errorf("the work failed with\n%q, and replayed with\n%q: %v", want, seen, err)
	}
}

// A client's Join has a changed address from that tick on, also in a replay.
func TestAMoveIsToldAndReplayed(t *testing.T) {
	var seen []string
	game := bareGame(func(r *netloop.Room) {
		r.On(netloop.Update, "look", func(tick *netloop.Tick) {
			for c := range tick.Clients() {
				seen = append(seen, c.Join().Addr)
			}
		})
	})
	var file bytes.Buffer
	b := newBareAs(t, netloop.Config{Record: &file}, game)
	adm, err := b.server.Handler.Admit(t.Context(), hello(bareSchema), "10.1.2.3:1000")
	if err != nil {
		t.Fatal(err)
	}
	s := newTestConn(adm)
	b.step()
	s.Moved("10.9.9.9:2000")
	b.step()
	b.step()
	want := []string{"10.1.2.3:1000", "10.9.9.9:2000", "10.9.9.9:2000"}
	if !slices.Equal(seen, want) {
		t.Errorf("the game saw the client at %v", seen)
	}
	seen = nil
	p, err := netloop.NewReplay(netloop.Config{}, game, bytes.NewReader(file.Bytes()))
	for err == nil {
		_, err = p.Step()
	}
	if !errors.Is(err, io.EOF) || !slices.Equal(seen, want) {
		t.Errorf("replayed, the game saw the client at %v, %v", seen, err)
	}
}

// writes accepts the given number of writes and then fails.
type writes int

func (w *writes) Write(b []byte) (int, error) {
	if *w--; *w < 0 {
		return 0, errors.New("the disk is full")
	}
	return len(b), nil
}

// A recorder keeps no reference to the data of a written tick, and after a failed write it digests
// no more data.
func TestARecorderReleasesWrittenData(t *testing.T) {
	const lasts = 4 // writes that succeed, including the head
	w := writes(lasts)
	b := newBareAs(t, netloop.Config{Record: &w}, func(r *netloop.Room) {
		bareWords.Handle(r, func(tick *netloop.Tick, _ *netloop.Client, _ word) error {
			bareWords.Send(tick, netloop.Everyone(), word{})
			netloop.Go(tick, func(context.Context) (int, error) { return 1, nil }, func(*netloop.Tick, int, error) {})
			return nil
		})
	})
	s := b.join()
	for range lasts + 2 {
		b.push(s, transport.Arrival{Kind: transport.MessageArrived, Decoded: &word{}, Message: transport.Message{Method: idOf(bareWords)}})
		if err := bareWords.Post(b.played, word{}); err != nil {
			t.Fatal(err)
		}
		b.step()
		b.room.WaitForWork()
		if held := b.room.Recorded(); held != "" {
			t.Errorf("after tick %d: %s", b.tick, held)
		}
		b.room.Sent().Take()
	}
	carry(s, nil)
	b.step()
	if sum := b.room.Sent().Take(); sum != 0 {
		t.Errorf("after the recording has failed it sums up %x", sum)
	}
	b.lacks(`netloop_queue_drops_total{queue="recording",reason="failed"} 1`)
}

// A replayed room counts its seats as the recorded room did: each joined client has a seat until
// it leaves.
func TestAReplayCountsItsSeats(t *testing.T) {
	game := bareGame(func(*netloop.Room) {})
	var file bytes.Buffer
	b := newBareAs(t, netloop.Config{Record: &file}, game)
	var want []int
	s := b.join()
	b.step()
	want = append(want, b.room.Admission.Seats())
	b.join()
	b.step()
	want = append(want, b.room.Admission.Seats())
	s.End(transport.Closed{Code: netloop.CodeLost})
	b.step()
	want = append(want, b.room.Admission.Seats())
	in, _, err := recording.NewReader(bytes.NewReader(file.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	again := newBare(t, game)
	virtual := clock.NewVirtual()
	again.server.UseClock(virtual)
	p := room.NewReplay(again.room, in, virtual)
	for tick, seats := range want {
		if _, err := p.Step(); err != nil || again.room.Admission.Seats() != seats {
			t.Errorf("after tick %d %d seats are taken, want %d: %v", tick+1, again.room.Admission.Seats(), seats, err)
		}
	}
	if !slices.Equal(want, []int{1, 2, 1}) {
		t.Errorf("%v seats were taken", want)
	}
}
