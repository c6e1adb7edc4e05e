package netloop

import (
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/netloop/netloop/internal/clock"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// A room leaks neither its memory nor its name if its Open fails, panics or ends its goroutine
// after it has watched other rooms, or if it cannot be recorded.
func TestAFailedOpenLeavesNothingBehind(t *testing.T) {
	const rooms = 200
	var freed atomic.Int64
	opened := 0
	record := func(RoomInfo) (io.WriteCloser, error) { return nil, errors.New("the disk is full") }
	s := newStill(t, Config{RecordRoom: record}, closedGame{&opening{fill: func(r *Room) error {
		if r.Spec().Name == "" {
			return nil
		}
		runtime.AddCleanup(r, func(int) { freed.Add(1) }, 0)
		WatchRooms(r, RoomFilter[struct{}]{}, func(*Tick, []RoomChange[struct{}]) {})
		switch opened++; opened % 4 {
		case 0:
			panic("ouch")
		case 1:
			runtime.Goexit()
		case 2:
			return errors.New("the disk is full")
		}
		return nil
	}}})
	for range rooms {
		done := make(chan error, 1)
		go func() {
			defer close(done)
			_, err := s.OpenRoom(t.Context(), RoomSpec{Name: "a"})
			done <- err
		}()
		if err, returned := <-done; returned && err == nil {
			t.Fatal("a room is open")
		}
	}
	for range 100 {
		if runtime.GC(); freed.Load() >= rooms-1 { // The last one may be on a stack.
			break
		}
		time.Sleep(time.Millisecond) // Cleanups run on a goroutine of the runtime.
	}
	if n := freed.Load(); n < rooms-1 {
		t.Errorf("%d of %d rooms are freed", n, rooms)
	}
	if s.rooms.Len() != 1 {
		t.Errorf("%d names are taken", s.rooms.Len())
	}
}

// A client is refused, and keeps its own goroutine, if the Open of the requested room ends its
// goroutine.
func TestAnOpenThatEndsItsGoroutineIsTold(t *testing.T) {
	g := &opening{
		fill: func(r *Room) error {
			if r.Spec().Name != "" {
				runtime.Goexit()
			}
			return nil
		},
		answer: func(context.Context, string, *Join) (RoomSpec, error) { return RoomSpec{}, nil },
	}
	s := newStill(t, Config{}, g)
	_, _, err := s.roomFor(t.Context(), &netloopv1.Hello{Room: "a"}, "")
	refusedWith(t, "a room whose Open ends its goroutine", err, CodeInternal)
}

// A panic of the program's RecordRoom is an error of the room that opens, and Run returns. So is a
// panic of the Close of its recording.
func TestARecordRoomThatPanicsIsTold(t *testing.T) {
	record := func(RoomInfo) (io.WriteCloser, error) { panic("ouch") }
	s, err := New(Config{Offline: true, RecordRoom: func(i RoomInfo) (io.WriteCloser, error) { return record(i) }}, closedGame{new(opening)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.OpenRoom(t.Context(), RoomSpec{Name: "a"}); err == nil || !strings.Contains(err.Error(), "RecordRoom panicked: ouch") {
		t.Errorf("the error is %v", err)
	}
	record = func(RoomInfo) (io.WriteCloser, error) { return panickyFile{}, nil }
	if _, err := s.OpenRoom(t.Context(), RoomSpec{Name: "a"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), "Close panicked") {
		t.Errorf("Close: %v", err)
	}
	counted(t, s, `netloop_system_panics_total{system="RecordRoom"} 2`)
}

// Run returns even if the Close of a recording ends its goroutine, or never returns.
func TestARecordingThatDoesNotCloseIsLeftBehind(t *testing.T) {
	release := make(chan struct{})
	for name, tt := range map[string]struct {
		close func()
		want  string
	}{
		"Goexit": {runtime.Goexit, "called runtime.Goexit"},
		"hangs":  {func() { <-release }, "does not return"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release = make(chan struct{})
				s, err := New(Config{Offline: true, RecordRoom: func(RoomInfo) (io.WriteCloser, error) {
					return stubbornFile{io.Discard, tt.close}, nil
				}}, closedGame{new(opening)})
				if err != nil {
					t.Fatal(err)
				}
				s.clock.Clock = clock.NewVirtual()
				if _, err := s.OpenRoom(t.Context(), RoomSpec{Name: "a"}); err != nil {
					t.Fatal(err)
				}
				if err := s.Close(); err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("Close: %v", err)
				}
				close(release)
				synctest.Wait()
			})
		})
	}
}

type stubbornFile struct {
	io.Writer
	close func()
}

func (f stubbornFile) Close() error { f.close(); return nil }

type panickyFile struct{}

func (panickyFile) Write(b []byte) (int, error) { return len(b), nil }
func (panickyFile) Close() error                { panic("ouch") }

var reported = NewRPC[struct{ N uint64 }](openingSchema, "reported", ServerOnly())

// A function of HandleServer that ends its goroutine costs its message alone, and a function that
// ignores the end of its context is abandoned: Run returns, and counts it.
func TestAHandleServerThatDoesNotReturnIsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := New(Config{Offline: true, Watchdog: -1}, closedGame{new(opening)})
		if err != nil {
			t.Fatal(err)
		}
		s.clock.Clock = clock.NewVirtual()
		release := make(chan struct{})
		var heard []uint64
		if err := reported.HandleServer(s, func(_ context.Context, _ *Sender, m struct{ N uint64 }) {
			switch heard = append(heard, m.N); m.N {
			case 0:
				runtime.Goexit()
			case 2:
				<-release
			}
		}); err != nil {
			t.Fatal(err)
		}
		if err := s.room.e.Inspect(func() {
			for n := range uint64(3) {
				reported.SendServer(&s.room.tick, struct{ N uint64 }{n}, nil)
			}
		}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 2*cancelGrace {
			t.Errorf("Run has returned after %v", took)
		}
		counted(t, s, `netloop_left_behind_total{hook="HandleServer"} 1`)
		close(release)
		synctest.Wait()
		if len(heard) != 3 {
			t.Errorf("heard %v", heard)
		}
	})
}

// An Open that never returns does not keep Run from returning.
func TestAnOpenThatHangsIsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, opens := make(chan struct{}), make(chan struct{})
		s, err := New(Config{Offline: true, Watchdog: -1}, closedGame{&opening{fill: func(r *Room) error {
			if r.Spec().Name != "" {
				close(opens)
				<-release
			}
			return nil
		}}})
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = s.OpenRoom(context.Background(), RoomSpec{Name: "a"}) }()
		<-opens
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		counted(t, s, `netloop_left_behind_total{hook="Open"} 1`)
		close(release)
		synctest.Wait()
	})
}

// A filter of WatchRooms that never returns does not keep Run from returning.
func TestAFilterThatHangsIsLeftBehind(t *testing.T) {
	release, asked := make(chan struct{}), make(chan struct{})
	hangs := sync.OnceFunc(func() { close(asked); <-release })
	s, err := New(Config{Offline: true, Watchdog: -1}, closedGame{&opening{fill: func(r *Room) error {
		WatchRooms(r, RoomFilter[struct{}]{Where: func(RoomListing[struct{}]) bool { hangs(); return true }}, func(*Tick, []RoomChange[struct{}]) {})
		return nil
	}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	<-asked
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	counted(t, s, `netloop_left_behind_total{hook="WatchRooms"} 1`)
	close(release)
}

// A locked room also refuses delayed spectators.
func TestALockedRoomKeepsOutDelayedSpectators(t *testing.T) {
	s := newStill(t, Config{Room: RoomSpec{MaxSpectators: 3, SpectatorDelay: time.Second}}, closedGame{new(opening)})
	watch := func() error {
		hello := openingSchema.s.Hello()
		hello.Spectate = true
		_, err := (admitter{s}).Admit(t.Context(), hello, "1.2.3.4:5")
		return err
	}
	for _, locked := range []bool{false, true, false} {
		if err := s.room.e.Inspect(func() { s.room.Lock(&s.room.tick, locked) }); err != nil {
			t.Fatal(err)
		}
		if err := watch(); (err != nil) != locked {
			t.Errorf("locked %v: %v", locked, err)
		}
	}
}
