package seats

import (
	"errors"
	"testing"
)

// A bound ticket admits only the client with the new text, as the player to which it is bound; it
// is bound again for the same player only.
func TestATicketIsBoundToAPlayer(t *testing.T) {
	b := newFixture(t)
	texts, err := b.s.Reserve(Reservation{Seats: 1, TTL: 10}, "oak", 0)
	if err != nil {
		t.Fatal(err)
	}
	ann := func(number uint64) *Identity {
		return &Identity{Subject: "ann", From: Origin{Server: "x", Room: "elm", Client: 3, Number: number}}
	}
	bind := func(text string, who *Identity) string {
		t.Helper()
		bound, err := b.s.Bind(text, who, 1)
		if err != nil {
			t.Fatal(err)
		}
		return bound
	}
	refused := func(what, text string, who *Identity, want error) {
		t.Helper()
		_, err := b.s.Bind(text, who, 1)
		b.refused(what, err, want)
	}
	refused("an unknown ticket", "x@oak", ann(1), ErrTicket)
	lost := bind(texts[0], ann(1))
	if name, ok := TicketRoom(lost); name != "oak" || !ok || lost == texts[0] {
		t.Errorf("bound as %q", lost)
	}
	refused("another player", texts[0], &Identity{Subject: "bob", From: Origin{Server: "x"}}, errBound)
	refused("the same player of another server", texts[0], &Identity{Subject: "ann", From: Origin{Server: "y"}}, errBound)
	refused("a bound text", lost, ann(1), errBound)
	bound := bind(texts[0], ann(2))
	for _, text := range []string{texts[0], lost} {
		if _, err := b.s.Show(text, 1); !errors.Is(err, ErrTicket) {
			t.Errorf("a text that is no longer valid: %v", err)
		}
	}
	b.counts(1, "0 0 1")
	shown, err := b.s.Show(bound, 1)
	if err != nil || shown.Identity() == nil || shown.Identity().Subject != "ann" {
		t.Fatal(err)
	}
	refused("a shown ticket", texts[0], ann(3), errShown)
	at := b.sits(&Join{Subject: "ann"}, shown)
	refused("a ticket with a seat", texts[0], ann(3), errShown)
	if who := b.s.Heard(at, 0); who != nil {
		t.Error("data of an older connection is that of the client")
	}
	if who := b.s.Heard(at, 1); who == nil || who.From.Number != 2 {
		t.Errorf("the client is from %+v", who)
	}
	if who := b.s.Heard(at, 1); who != nil {
		t.Error("the client has arrived twice")
	}
	refused("a used ticket", texts[0], ann(3), ErrTicket)
	if n := b.s.Sizes(); n["tickets"]+n["bound"] != 0 {
		t.Errorf("entries of a used ticket: %v", n)
	}
}

// A bound ticket expires like any other, and frees its seat once.
func TestABoundTicketExpires(t *testing.T) {
	b := newFixture(t)
	texts, err := b.s.Reserve(Reservation{Seats: 1, TTL: 10}, "oak", 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.s.Bind(texts[0], &Identity{}, 9); err != nil {
		t.Fatal(err)
	}
	b.counts(9, "0 0 1")
	b.counts(10, "0 0 0")
	_, err = b.s.Bind(texts[0], &Identity{}, 10)
	b.refused("an expired ticket", err, ErrTicket)
	if n := b.s.Sizes(); n["tickets"]+n["bound"] != 0 {
		t.Errorf("entries of an expired ticket: %v", n)
	}
}
