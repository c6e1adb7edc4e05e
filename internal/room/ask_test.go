package room_test

import (
	"context"
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/room"
)

// A bounded number of questions waits for a tick; the tick answers each, and then as many may be
// asked again. A caller that has given up does not block the tick, and gets an error.
func TestQuestionsWaitForATickUpToABound(t *testing.T) {
	b := newBare(t, func(*netloop.Room) {})
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	for range 2 {
		seen := 0
		ask := func() error {
			_, err := b.room.Questions.Ask(gone, func(uint64) any { seen++; return nil })
			return err
		}
		for range room.MaxQuestions {
			if err := ask(); err == nil || err.Error() != "no tick ended meanwhile" {
				t.Fatal(err)
			}
		}
		if err := ask(); err == nil || err.Error() != "too many ask at once: try again" {
			t.Errorf("one too many: %v", err)
		}
		b.step()
		b.step()
		if seen != room.MaxQuestions {
			t.Errorf("%d questions were answered, want %d", seen, room.MaxQuestions)
		}
	}
}
