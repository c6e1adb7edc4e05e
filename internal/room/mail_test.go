package room_test

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/rpcqueue"
)

// The waiting messages of rooms are limited per sender, in total, and in bytes; messages posted by
// the program have a separate limit. Taken messages free their capacity, and a room that has ended
// accepts none.
func TestWaitingMailIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q room.Posts
		posted, fromRooms, bytes, each := 0, 0, 0, map[string]int{}
		for range rapid.IntRange(1, 40).Draw(t, "rounds") {
			if rapid.IntRange(0, 9).Draw(t, "taken") == 0 {
				if got := len(q.Take()); got != posted+fromRooms {
					t.Fatalf("took %d of %d", got, posted+fromRooms)
				}
				posted, fromRooms, bytes = 0, 0, 0
				clear(each)
			}
			from := fmt.Sprint("room ", rapid.IntRange(0, 40).Draw(t, "from"))
			size := rapid.SampledFrom([]int{1, 100, 16 << 10, 1 << 20}).Draw(t, "size")
			for range rapid.IntRange(1, 600).Draw(t, "many") {
				fits := fromRooms < room.MaxRoomMessages && bytes+size <= room.MaxWaiting && each[from] < room.MaxFromRoom
				it := room.RoomMessageItem(from, size)
				if from == "room 0" {
					fits, it = posted < room.MaxPosts, rpcqueue.Item{}
				}
				if err := q.Add(it); (err == nil) != fits || err != nil && !errors.Is(err, room.ErrFull) {
					t.Fatalf("with %d posted, %d of rooms, %d bytes, %d of %s: %v", posted, fromRooms, bytes, each[from], from, err)
				}
				switch {
				case !fits:
				case from == "room 0":
					posted++
				default:
					fromRooms++
					bytes += size
					each[from]++
				}
			}
		}
		if got := len(q.Close()); got != posted+fromRooms {
			t.Fatalf("%d of %d were left", got, posted+fromRooms)
		}
		if err := q.Add(room.RoomMessageItem("late", 1)); !errors.Is(err, room.ErrEnded) {
			t.Fatalf("after the end: %v", err)
		}
	})
}

// The messages that a room sends are limited per tick, by number and by size; each tick starts
// anew.
func TestSentMailPerTickIsBounded(t *testing.T) {
	var m room.Mailed
	for tick := range uint64(3) {
		for i := range room.MaxMails + 2 {
			if fits := m.Fits(2*tick, 1); fits != (i < room.MaxMails) {
				t.Fatalf("message %d of tick %d: %v", i+1, tick, fits)
			}
		}
		const size = 16 << 10
		for i := range room.MaxMailBytes/size + 2 {
			if fits := m.Fits(2*tick+1, size); fits != (i < room.MaxMailBytes/size) {
				t.Fatalf("message %d of %d bytes: %v", i+1, size, fits)
			}
		}
	}
}
