package netloop

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/netloop/netloop/internal/schema"
)

// A role is a whole number, in any numeric type of a token or a game.
func TestRolesAreNumbers(t *testing.T) {
	for _, c := range []struct {
		claim any
		want  int
	}{{2, 2}, {int64(3), 3}, {4.0, 4}, {"5", 0}, {nil, 0}, {uint8(6), 0}} {
		j := Join{Claims: map[string]any{RoleClaim: c.claim}}
		if got := j.Role(); got != c.want {
			t.Errorf("the claim %v (%T) is role %d, want %d", c.claim, c.claim, got, c.want)
		}
	}
	if (&Join{}).Role() != 0 {
		t.Error("somebody without claims has a role")
	}
}

// The data of a reservation and of a client is decoded into the game's types, or is an error.
func TestJoinsAreRead(t *testing.T) {
	var dst struct{ Team int }
	for name, read := range map[string]func(text string) error{
		"join parameters": func(text string) error { return (&Join{params: []byte(text)}).Params(&dst) },
		"parameters of the reservation": func(text string) error {
			has, err := (&Join{Ticket: true, reserved: []byte(text)}).Reservation(&dst)
			if !has {
				t.Error("a ticket with parameters is none")
			}
			return err
		},
	} {
		dst.Team = 0
		if err := read(`{"Team":4}`); err != nil || dst.Team != 4 {
			t.Errorf("%s: team %d, %v", name, dst.Team, err)
		}
		if err := read(`{"Team":"red"}`); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s that are others: %v", name, err)
		}
		dst.Team = 9
		if err := read(""); err != nil || dst.Team != 9 {
			t.Errorf("no %s: team %d, %v", name, dst.Team, err)
		}
	}
	for _, ticket := range []bool{false, true} {
		if has, err := (&Join{Ticket: ticket}).Reservation(&dst); has != ticket || err != nil {
			t.Errorf("a ticket %v is %v, %v", ticket, has, err)
		}
	}
}

// Rooms that publish a protobuf message are found by its type, and rooms that publish a struct by
// any type of the same layout; the caller owns the listing.
func TestRoomsAreFoundByTypesOfTheSameLayout(t *testing.T) {
	type host struct{ Name string }
	type owner struct{ Name string }
	type other struct{ Level int32 }
	s := newStill(t, Config{}, closedGame{&opening{fill: func(r *Room) error {
		switch r.Spec().Name {
		case "text":
			r.Publish(nil, wrapperspb.String("hi"))
		case "host":
			r.Publish(nil, host{"ann"})
		case "gone":
			r.Publish(nil, host{"bob"})
			r.Publish(nil, nil)
		}
		return nil
	}}})
	for _, name := range []string{"text", "host", "gone"} {
		if _, err := s.OpenRoom(t.Context(), RoomSpec{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	texts := ListRooms(s, RoomFilter[*wrapperspb.StringValue]{Where: func(l RoomListing[*wrapperspb.StringValue]) bool { return l.Info.Value == "hi" }})
	if len(texts) != 1 || texts[0].Name != "text" || texts[0].Info.Value != "hi" {
		t.Fatalf("messages are listed as %v", texts)
	}
	texts[0].Info.Value = "changed"
	if again := ListRooms(s, RoomFilter[*wrapperspb.StringValue]{}); again[0].Info.Value != "hi" {
		t.Errorf("a list is shared: %v", again)
	}
	hosts := ListRooms(s, RoomFilter[host]{})
	owners := ListRooms(s, RoomFilter[owner]{Where: func(l RoomListing[owner]) bool { return l.Info.Name == "ann" }})
	if len(hosts) != 1 || len(owners) != 1 || owners[0].Info.Name != "ann" || hosts[0].Info.Name != "ann" {
		t.Errorf("structs are listed as %v and %v", hosts, owners)
	}
	if others := ListRooms(s, RoomFilter[other]{}); len(others) != 0 {
		t.Errorf("other structs are listed as %v", others)
	}
	if all := ListRooms(s, RoomFilter[struct{}]{Limit: 3}); len(all) != 3 {
		t.Errorf("three of four are %d", len(all))
	}
	if full := (&RoomListing[host]{Players: 5, MaxClients: 3}); full.Free() != 0 {
		t.Errorf("a room with more players than seats has %d left", full.Free())
	}
}

// A list has a hundred rooms unless the filter sets another limit.
func TestAListIsBounded(t *testing.T) {
	s := newStill(t, Config{}, closedGame{new(opening)})
	for i := range 101 {
		if _, err := s.OpenRoom(t.Context(), RoomSpec{Name: strings.Repeat("x", 1+i), Rate: Hz(1)}); err != nil {
			t.Fatal(err)
		}
	}
	for limit, want := range map[int]int{0: 100, 1: 1, 100: 100, 101: 101, 102: 102, 200: 102, -1: 102} {
		if got := len(ListRooms(s, RoomFilter[struct{}]{Limit: limit})); got != want {
			t.Errorf("a limit of %d lists %d rooms, want %d", limit, got, want)
		}
	}
}

// A room's published Info and its parameters are limited to the bytes of a message exactly;
// publishing an equal Info again changes no listing.
func TestPublishedInfoIsBounded(t *testing.T) {
	type show struct {
		B []byte `net:"max=20000"`
	}
	bytes := func(n int) show { return show{make([]byte, n)} }
	most := 0
	for most = range MaxMessage {
		if packed, err := schema.Pack(bytes(most + 1)); err != nil || len(packed) > MaxMessage {
			break
		}
	}
	s := newStill(t, Config{}, closedGame{&opening{fill: func(r *Room) error {
		if r.Spec().Kind != "shows" {
			return nil
		}
		for _, same := range []bool{false, true} {
			r.listing.changed = false
			if r.Publish(nil, bytes(most)); r.listing.changed == same {
				t.Errorf("published again %v, it has changed: %v", same, r.listing.changed)
			}
		}
		r.Publish(nil, bytes(most+1))
		return nil
	}}})
	if _, err := s.OpenRoom(t.Context(), RoomSpec{Name: "a", Kind: "shows"}); err == nil || !strings.Contains(err.Error(), "are shown") {
		t.Errorf("one byte too many is shown: %v", err)
	}
	if _, err := s.OpenRoom(t.Context(), RoomSpec{Name: "a", Params: bytes(most)}); err != nil {
		t.Errorf("the largest parameters: %v", err)
	}
	if _, err := s.OpenRoom(t.Context(), RoomSpec{Name: "b", Params: bytes(most + 1)}); err == nil || !strings.Contains(err.Error(), "Room.Params: ") {
		t.Errorf("larger ones: %v", err)
	}
}

// A filter of a type that no room can publish is an error of Open.
func TestAFilterOfAnImpossibleTypeIsRefused(t *testing.T) {
	s := newStill(t, Config{}, closedGame{&opening{fill: func(r *Room) error {
		if r.Spec().Name == "a" {
			WatchRooms(r, RoomFilter[chan int]{}, func(*Tick, []RoomChange[chan int]) {})
		}
		return nil
	}}})
	if _, err := s.OpenRoom(t.Context(), RoomSpec{Name: "a"}); err == nil || !strings.Contains(err.Error(), "WatchRooms: use a plain struct") {
		t.Errorf("it watches for channels: %v", err)
	}
}

// Reports to watches take a tenth of a core at most, and are no more frequent than listings.
func TestTellingTakesATenthOfACore(t *testing.T) {
	for took, want := range map[int]int{0: 50, 5: 50, 6: 60, 100: 1000} {
		if got := notifyGap(time.Duration(took) * time.Millisecond); got != time.Duration(want)*time.Millisecond {
			t.Errorf("after %d ms of telling nobody is told for %v, want %d ms", took, got, want)
		}
	}
}
