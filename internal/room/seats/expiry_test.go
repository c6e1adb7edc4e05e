package seats

import (
	"errors"
	"testing"
	"time"
)

// A reservation takes the seats of expired tickets, and none before.
func TestExpiredTicketsLeaveTheirSeats(t *testing.T) {
	b := newFixture(t)
	if err := b.reserve(0, time.Second, false, "a", "b"); err != nil {
		t.Fatal(err)
	}
	if err := b.reserve(time.Second-1, time.Minute, false, "c"); err == nil || errors.Is(err, ErrTicket) {
		t.Errorf("a seat is reserved twice: %v", err)
	}
	if err := b.reserve(time.Second, time.Minute, false, "c", "d"); err != nil {
		t.Error(err)
	}
}
