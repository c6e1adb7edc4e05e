package e2e_test

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
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// A player changes from playing to spectating and back, with one program after the other. The
// game gets a leave, a join and the new role each time, or no role if it refuses the join; the
// objects of the client that left are despawned, and the recording replays.
func TestAPlayerChangesBetweenPlayingAndSpectating(t *testing.T) {
	var told []string
	g := script(func(r *netloop.Room) {
		r.OnAdmit(func(_ context.Context, j *netloop.Join) error { j.Subject = j.Token; return nil })
		r.OnJoin(func(tick *netloop.Tick, c *netloop.Client) error {
			told = append(told, fmt.Sprint("join ", c.ID(), c.Spectator()))
			if len(told) > 11 { // The fifth one.
				return netloop.Refuse(netloop.CodeRefused, "enough")
			}
			if !c.Spectator() {
				things.Spawn(tick, thing{N: 1}, netloop.OwnedBy(c.ID()))
			}
			return nil
		})
		r.OnResume(func(*netloop.Tick, *netloop.Client) { told = append(told, "resume") })
		r.OnRole(func(_ *netloop.Tick, c *netloop.Client) {
			told = append(told, fmt.Sprint("role ", c.ID(), c.Spectator()))
		})
		r.OnLeave(func(_ *netloop.Tick, c *netloop.Client, why *netloop.Closed) {
			told = append(told, fmt.Sprint("leave ", c.ID(), c.Spectator(), why.Code))
		})
	})
	var file bytes.Buffer
	w := netlooptest.New(t, g, netlooptest.Record(&file), netlooptest.Room(netloop.RoomSpec{MaxClients: 1, MaxSpectators: 1}))
	link := netlooptest.Link{Delay: 5 * time.Millisecond}
	var last *client.Client
	for i := range 4 {
		before := last
		last = w.JoinAs(client.Config{Token: "ann", Spectate: i%2 == 1}, link)
		w.Step(30)
		plays(t, "the newer program", last, "")
		if before != nil {
			wasRefused(t, "the older program", before, netloop.CodeReplaced)
		}
		w.Look(last, func(tick *netloop.Tick) {
			if n := things.Len(tick); n != 1-i%2 {
				t.Errorf("program %d sees %d objects", i, n)
			}
		})
	}
	id, replaced := last.ID(), netloop.CodeReplaced
	refused := w.JoinAs(client.Config{Token: "ann"}, link)
	w.Step(30)
	wasRefused(t, "the fifth program", refused, netloop.CodeRefused)
	want := []string{fmt.Sprint("join ", id, false)}
	for _, watches := range []bool{true, false, true} {
		want = append(want, fmt.Sprint("leave ", id, !watches, replaced), fmt.Sprint("join ", id, watches), fmt.Sprint("role ", id, watches))
	}
	want = append(want, fmt.Sprint("leave ", id, true, replaced), fmt.Sprint("join ", id, false), fmt.Sprint("leave ", id, false, netloop.CodeRefused))
	if !slices.Equal(told, want) {
		t.Errorf("the game got %q, want %q", told, want)
	}
	told = nil
	p, err := netloop.NewReplay(netloop.Config{}, g, &file)
	for err == nil {
		_, err = p.Step()
	}
	if !errors.Is(err, io.EOF) || !slices.Equal(told, want) {
		t.Errorf("the replay got %q: %v", told, err)
	}
}
