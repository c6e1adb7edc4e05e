package room_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/recording"
	"github.com/netloop/netloop/internal/transport"
)

// An operator's commands act in the next tick, their errors name the fault, and a replay executes
// them again.
func TestCommandsActAndAreReplayed(t *testing.T) {
	var ran []uint64 // ticks in which the system runs
	game := bareGame(func(r *netloop.Room) {
		r.Group("work")
		r.On(netloop.Update, "think", func(tick *netloop.Tick) { ran = append(ran, tick.Number()) }, netloop.InSystemGroup("work"))
	})
	var file bytes.Buffer
	b := newBareAs(t, netloop.Config{Record: &file}, game)
	c := b.join()
	b.step()
	last := uint64(1)
	execute := func(cmd recording.Command, want string) {
		t.Helper()
		done := make(chan error, 1)
		go func() { done <- b.room.Commands.Execute(t.Context(), cmd) }()
		for !b.room.Commands.Waiting() {
			runtime.Gosched()
		}
		b.step()
		last++
		if err := <-done; (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", cmd, err, want)
		}
	}
	// In ticks 2 to 5. A change of a system takes effect in the next tick.
	execute(recording.Command{Kind: recording.Disable, System: "work"}, "")
	execute(recording.Command{Kind: recording.Disable, System: "none"}, `no system "none"`)
	execute(recording.Command{Kind: recording.Disable, System: "rpc.drain"}, "messages would wait for ever")
	execute(recording.Command{Kind: recording.Enable, System: "work"}, "")
	execute(recording.Command{Kind: 99}, "no command 99")
	execute(recording.Command{Kind: recording.Lock}, "")
	if !b.room.Admission.Locked() {
		t.Error("the room is open")
	}
	execute(recording.Command{Kind: recording.Unlock}, "")
	if b.room.Admission.Locked() {
		t.Error("the room is locked")
	}
	execute(recording.Command{Kind: recording.Kick, Client: 99}, "no client 99")
	execute(recording.Command{Kind: recording.Kick, Client: 1, Code: uint32(transport.CodeKicked), Text: "spoils the game"}, "")
	for range 60 {
		b.step()
		last++
	}
	want := []uint64{1, 2}
	for n := uint64(6); n <= last; n++ {
		want = append(want, n)
	}
	if why, ended := c.Cause(); !slices.Equal(ran, want) || !ended || why.Text != "spoils the game" {
		t.Fatalf("ran in %v, closed with %v", ran, why)
	}
	ran = nil
	p, err := netloop.NewReplay(netloop.Config{}, game, &file)
	for err == nil {
		_, err = p.Step()
	}
	if !errors.Is(err, io.EOF) || !slices.Equal(ran, want) {
		t.Errorf("replayed: %v, ran in %v", err, ran)
	}
}

// Waiting commands are bounded, and a caller does not wait longer than its context.
func TestCommandsAreBounded(t *testing.T) {
	b := newBare(t, func(*netloop.Room) {})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for n := range 17 {
		want := "no tick ended"
		if n == 16 {
			want = "too many commands"
		}
		if err := b.room.Commands.Execute(ctx, recording.Command{Kind: recording.Lock}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("command %d: %v, want %s", n+1, err, want)
		}
	}
	b.step()
	if !b.room.Admission.Locked() {
		t.Error("a command whose caller has gone has no effect")
	}
}
