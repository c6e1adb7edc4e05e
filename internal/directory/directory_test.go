package directory_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/netloop/netloop/internal/directory"
)

// The directory behaves like a map of names with a list in the order of opening, for any sequence
// of operations.
func TestADirectoryFollowsTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const most = 5
		h := directory.New[int](most)
		filling := map[string]*directory.Reservation[int]{}
		open := map[string]int{}
		codes := map[string]string{} // by the taken names
		var order []int
		closed, rooms := false, 0
		name := rapid.SampledFrom([]string{"", "a", "b", "c", "d", "e", "f"})
		code := rapid.SampledFrom([]string{"", "", "x", "y"})
		t.Repeat(map[string]func(*rapid.T){
			"reserve": func(t *rapid.T) {
				n, code := name.Draw(t, "name"), code.Draw(t, "code")
				p, err := h.Reserve(n, code)
				_, taken := open[n]
				var want error
				switch {
				case closed:
					want = directory.ErrClosed
				case taken || filling[n] != nil:
					want = directory.ErrTaken
				case code != "" && slices.Contains(slices.Collect(maps.Values(codes)), code):
					want = directory.ErrCode
				case len(open)+len(filling) >= most:
					want = directory.ErrFull
				}
				if !errors.Is(err, want) {
					t.Fatalf("reserving %q: %v, want %v", n, err, want)
				}
				if err == nil {
					filling[n], codes[n] = p, code
				}
			},
			"fill": func(t *rapid.T) {
				for _, n := range slices.Sorted(maps.Keys(filling)) {
					rooms++
					filling[n].Fill(rooms)
					open[n], order = rooms, append(order, rooms)
					delete(filling, n)
					return
				}
			},
			"give up": func(t *rapid.T) {
				for _, n := range slices.Sorted(maps.Keys(filling)) {
					filling[n].Cancel()
					delete(filling, n)
					delete(codes, n)
					return
				}
			},
			"leave": func(t *rapid.T) {
				n := name.Draw(t, "name")
				if room, ok := open[n]; ok {
					h.Remove(n)
					delete(open, n)
					delete(codes, n)
					order = slices.DeleteFunc(order, func(r int) bool { return r == room })
				}
			},
			"close": func(t *rapid.T) {
				if rapid.IntRange(0, 20).Draw(t, "luck") == 0 {
					h.Close()
					closed = true
				}
			},
			"": func(t *rapid.T) {
				all := slices.Clone(h.All())
				inOrder := slices.Clone(order)
				slices.Sort(all)
				slices.Sort(inOrder)
				if !slices.Equal(all, inOrder) || h.Len() != len(open)+len(filling) {
					t.Fatalf("the rooms are %v of %d, want %v", all, h.Len(), inOrder)
				}
				n := name.Draw(t, "look for")
				if filling[n] != nil {
					return
				}
				got, ok := h.Find(context.Background(), n)
				if want, there := open[n]; ok != there || got != want {
					t.Fatalf("%q is %d, %v, want %d, %v", n, got, ok, want, there)
				}
				for _, c := range []string{"", "x", "y", "z"} {
					want, there := 0, false
					for n, of := range codes {
						if room, is := open[n]; is && of == c && c != "" {
							want, there = room, true
						}
						if filling[n] != nil && of == c {
							want = -1
						}
					}
					if want < 0 {
						continue // Its room is about to open.
					}
					if got, ok := h.FindCode(context.Background(), c); ok != there || got != want {
						t.Fatalf("the code %q opens %d, %v, want %d, %v", c, got, ok, want, there)
					}
				}
				if list := h.All(); len(list) > 0 && &list[0] != &h.All()[0] {
					t.Fatal("a list that has not changed is made again")
				}
			},
		})
		for _, p := range filling {
			p.Cancel()
		}
		for n := range open {
			h.Remove(n)
		}
		h.Close()
		h.Wait()
		<-h.Opened()
	})
}

func TestRoomsAreListedInTheOrderOfOpening(t *testing.T) {
	h := directory.New[int](100)
	var want []int
	for i := range 50 {
		p, err := h.Reserve(fmt.Sprint(i), "")
		if err != nil || p.Number() != uint64(i+1) {
			t.Fatal(err, p.Number())
		}
		p.Fill(i)
		want = append(want, i)
	}
	if got := h.All(); !slices.Equal(got, want) {
		t.Errorf("listed %v", got)
	}
}

// After Close Wait returns once no room is open, and Opened is closed once none is being filled.
func TestAClosedDirectoryWaitsForItsRooms(t *testing.T) {
	h := directory.New[int](1)
	reserve := func() *directory.Reservation[int] {
		t.Helper()
		p, err := h.Reserve("a", "")
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	get := func(want bool) {
		t.Helper()
		if room, ok := h.Get("a"); ok != want || ok && room != 1 {
			t.Errorf("the open room is %d, %v", room, ok)
		}
	}
	get(false)
	reserve().Fill(1)
	get(true)
	h.Remove("a") // The server goes on without rooms.
	p := reserve()
	get(false)
	h.Close()
	h.Wait()
	select {
	case <-h.Opened():
		t.Error("the room that is being filled is forgotten")
	default:
	}
	p.Fill(1)
	h.Remove("a")
	<-h.Opened()
}

// Wait waits for the rooms that are open.
func TestAClosedDirectoryWaitsForOpenRooms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, over := directory.New[int](1), false
		p, err := h.Reserve("a", "")
		if err != nil {
			t.Fatal(err)
		}
		p.Fill(1)
		h.Close()
		go func() { h.Wait(); over = true }()
		if synctest.Wait(); over {
			t.Error("it does not wait")
		}
		h.Remove("a")
		if synctest.Wait(); !over {
			t.Error("it waits for ever")
		}
	})
}

// Find waits for a room that is being filled, and not longer than its context.
func TestFindWaitsForARoomThatIsBeingFilled(t *testing.T) {
	for _, fills := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			h := directory.New[int](2)
			p, err := h.Reserve("a", "")
			if err != nil {
				t.Fatal(err)
			}
			late, cancel := context.WithCancel(t.Context())
			cancel()
			if _, ok := h.Find(late, "a"); ok {
				t.Error("it was found before it was there")
			}
			found := make(chan bool)
			go func() {
				room, ok := h.Find(t.Context(), "a")
				found <- ok && room == 7
			}()
			synctest.Wait()
			if fills {
				p.Fill(7)
			} else {
				p.Cancel()
			}
			if got := <-found; got != fills {
				t.Errorf("filled %v, found %v", fills, got)
			}
			for range 20 {
				if _, ok := h.Find(late, "a"); ok != fills {
					t.Error("a finished wait changes the result")
				}
			}
		})
	}
}

// A site has its burst, gets one more in each gap, and does not affect another site; the number of
// stored sites is limited, and sites with a full burst are removed for others.
func TestTheTollIsPaidBySite(t *testing.T) {
	var limiter directory.SiteLimiter[int]
	pay := func(site int, at time.Duration) (n int) {
		for limiter.Allow(site, at) {
			n++
		}
		return n
	}
	for _, c := range []struct {
		site int
		at   time.Duration
		want int
	}{
		{1, 0, 32}, {1, directory.RoomInterval - 1, 0}, {1, directory.RoomInterval, 1}, {2, directory.RoomInterval, directory.RoomBurst},
		{1, 5 * directory.RoomInterval, 4}, {1, time.Hour, directory.RoomBurst},
	} {
		if limiter.Exhausted(c.site, c.at) != (c.want == 0) {
			t.Errorf("site %d at %v may have %d, and owes: %v", c.site, c.at, c.want, limiter.Exhausted(c.site, c.at))
		}
		if got := pay(c.site, c.at); got != c.want {
			t.Errorf("site %d at %v may have %d, want %d", c.site, c.at, got, c.want)
		}
		if !limiter.Exhausted(c.site, c.at) {
			t.Errorf("site %d at %v owes nothing after it has had all", c.site, c.at)
		}
	}
	limiter.Refund(1)
	if got := pay(1, time.Hour); got != 1 {
		t.Errorf("after a refund site 1 may have %d", got)
	}
	var full directory.SiteLimiter[int]
	full.Refund(-1) // It has paid nothing.
	for site := range directory.MaxSites {
		if !full.Allow(site, 0) {
			t.Fatalf("site %d is refused", site)
		}
	}
	if full.Allow(-1, 0) || !full.Allow(1, 0) {
		t.Error("beyond the bound a new site gets a room, or a known one none")
	}
	if !full.Allow(-1, directory.RoomInterval) {
		t.Error("sites that may have all again make no room")
	}
}

// The directory holds as many rooms as its limit and not one more, open or being filled; a room
// that leaves frees its slot.
func TestADirectoryIsFullAtItsMost(t *testing.T) {
	h := directory.New[int](2)
	for _, name := range []string{"a", "b"} {
		p, err := h.Reserve(name, "")
		if err != nil {
			t.Fatal(err)
		}
		if name == "a" {
			p.Fill(1)
		}
	}
	if _, err := h.Reserve("c", ""); !errors.Is(err, directory.ErrFull) {
		t.Errorf("a third of two: %v", err)
	}
	h.Remove("a")
	if _, err := h.Reserve("c", ""); err != nil {
		t.Errorf("after one has left: %v", err)
	}
}
