package netloop

import (
	"context"
	"testing"

	"github.com/netloop/netloop/internal/transport"
)

// TestWorkOfTheLastLeaveIsFinished saves a player from OnLeave while the room
// ends.
func TestWorkOfTheLastLeaveIsFinished(t *testing.T) {
	var calls []string
	b := newBare(t, func(r *Room) {
		r.OnLeave(func(tick *Tick, _ *Client, _ LeaveReason) {
			Go(tick, func(ctx context.Context) (string, error) { return "saved", ctx.Err() },
				func(_ *Tick, s string, err error) {
					if err != nil {
						t.Errorf("saving: %v", err)
					}
					calls = append(calls, s)
				})
		})
		r.OnClose(func(context.Context) error { calls = append(calls, "closed"); return nil })
	})
	s := b.join()
	b.step()
	if err := b.s.room.finish(LeaveReason{transport.CodeClosing, "bye"}); err != nil {
		t.Fatal(err)
	}
	if len(calls) != 2 || calls[0] != "saved" || calls[1] != "closed" {
		t.Errorf("called: %v", calls)
	}
	if c, closing := s.Cause(); !closing || c.Text != "bye" {
		t.Errorf("the client was told %v", c)
	}
}
