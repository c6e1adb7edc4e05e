package directory_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/netloop/netloop/internal/directory"
)

// A listing behaves like a map by room numbers: a list shows the entries at one moment, at most a
// gap ago, and is not built more often. The changes told to a watcher add up to the list, whether
// or not it was ready each time.
func TestAListingFollowsTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := directory.NewListing[int]()
		posted := map[uint64]int{}
		var now, made time.Duration
		made = -time.Hour
		shown := "map[]"
		entries := func(list []directory.Item[int]) map[uint64]int {
			m := map[uint64]int{}
			for i, p := range list {
				if m[p.Number] = *p.Entry; i > 0 && list[i-1].Number >= p.Number {
					t.Fatalf("%d stands behind %d", p.Number, list[i-1].Number)
				}
			}
			return m
		}
		known := map[uint64]int{} // by watcher; numbers are part of the values
		ready := true
		var w *directory.Watch[int]
		if rapid.Bool().Draw(t, "watched") {
			w = b.Watch(func(was, is []directory.Item[int]) bool {
				if !ready {
					return false
				}
				directory.Compare(was, is, func(was, is *int) {
					if was != nil {
						if n := uint64(*was / 1000); known[n] != *was {
							t.Fatalf("%d was not known", *was)
						}
						delete(known, uint64(*was/1000))
					}
					if is != nil {
						known[uint64(*is/1000)] = *is
					}
				})
				return true
			})
		}
		tell := func() {
			if w != nil && b.Notify(now) && !maps.Equal(known, entries(b.List(now))) {
				t.Fatalf("who watches knows %v, and the list is %v", known, entries(b.List(now)))
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"post": func(t *rapid.T) {
				n := rapid.Uint64Range(1, 9).Draw(t, "number")
				v := int(n)*1000 + rapid.IntRange(0, 99).Draw(t, "value")
				b.Set(n, &v)
				posted[n] = v
			},
			"take down": func(t *rapid.T) {
				n := rapid.Uint64Range(1, 9).Draw(t, "number")
				b.Set(n, nil)
				delete(posted, n)
			},
			"pass":     func(t *rapid.T) { now += time.Duration(rapid.IntRange(1, 60).Draw(t, "ms")) * time.Millisecond },
			"be ready": func(t *rapid.T) { ready = rapid.Bool().Draw(t, "ready") },
			"tell": func(*rapid.T) {
				tell()
				shown = fmt.Sprint(entries(b.List(now)))
			},
			"": func(t *rapid.T) {
				got := fmt.Sprint(entries(b.List(now)))
				if got != shown {
					if now-made < directory.ListInterval {
						t.Fatalf("two lists within %v", now-made)
					}
					shown, made = got, now
				}
			},
		})
		now += 2 * directory.ListInterval
		if got := entries(b.List(now)); !maps.Equal(got, posted) {
			t.Fatalf("in the end it lists %v, want %v", got, posted)
		}
		now, ready = now+2*directory.ListInterval, true
		tell()
		if w != nil && !maps.Equal(known, posted) {
			t.Fatalf("in the end who watches knows %v, want %v", known, posted)
		}
	})
}

// A watcher is woken by posts, and not after the end of its watch; a returned list is not changed
// any more.
func TestAListingWakesWatchers(t *testing.T) {
	b := directory.NewListing[int]()
	woken := func() bool {
		select {
		case <-b.Changed():
			return true
		default:
			return false
		}
	}
	b.Set(1, new(int))
	if woken() {
		t.Error("nobody watches")
	}
	told := 0
	w := b.Watch(func(_, _ []directory.Item[int]) bool { told++; return true })
	if !woken() || !b.Notify(0) || told != 1 {
		t.Errorf("told %d times of what was there", told)
	}
	if b.Notify(50*time.Millisecond - 1) {
		t.Error("it tells twice within a gap")
	}
	list := b.List(0)
	before := slices.Clone(list)
	b.Set(2, new(int))
	b.Set(1, nil)
	if !woken() || b.Notify(directory.ListInterval-1) || !b.Notify(directory.ListInterval) || told != 2 || !slices.Equal(list, before) {
		t.Errorf("told %d times, the old list is %v", told, list)
	}
	if !b.Notify(2*directory.ListInterval) || told != 2 {
		t.Error("told of nothing")
	}
	b.Unwatch(w)
	b.Set(3, new(int))
	if woken() || !b.Notify(4*directory.ListInterval) || told != 2 {
		t.Error("told after the end")
	}
}

// The differences between two lists are removed, added and replaced entries, in the order of the
// numbers; equal entries are no difference.
func TestListsAreCompared(t *testing.T) {
	a, b, c, d := new(int), new(int), new(int), new(int)
	*a, *b, *c, *d = 1, 2, 3, 4
	type list = []directory.Item[int]
	for _, x := range []struct {
		was, is list
		want    string
	}{
		{nil, nil, ""}, {list{{1, a}}, list{{1, a}}, ""}, {list{{1, a}}, nil, "1-"}, {nil, list{{1, a}}, "1+"}, {list{{1, a}}, list{{1, b}}, "1>2"},
		{list{{1, a}}, list{{2, b}}, "1- 2+"},
		{list{{1, a}, {3, c}}, list{{2, b}, {3, d}}, "1- 2+ 3>4"}, {list{{2, b}}, list{{1, a}, {2, b}, {3, c}}, "1+ 3+"}, {list{{1, a}, {2, b}, {3, c}}, list{{2, b}}, "1- 3-"},
	} {
		var got []string
		directory.Compare(x.was, x.is, func(was, is *int) {
			switch {
			case is == nil:
				got = append(got, fmt.Sprint(*was, "-"))
			case was == nil:
				got = append(got, fmt.Sprint(*is, "+"))
			default:
				got = append(got, fmt.Sprint(*was, ">", *is))
			}
		})
		if text := strings.ReplaceAll(strings.Join(got, ";"), " ", ""); text != strings.ReplaceAll(x.want, " ", ";") {
			t.Errorf("%v and %v differ by %q, want %q", x.was, x.is, text, x.want)
		}
	}
}

// BenchmarkListing lists 10 000 rooms, of which one has changed each time.
func BenchmarkListing(b *testing.B) {
	listing := directory.NewListing[int]()
	for i := range uint64(10_000) {
		listing.Set(i, new(int))
	}
	now := time.Duration(0)
	for b.Loop() {
		listing.Set(uint64(now)%10_000, new(int))
		now += directory.ListInterval
		listing.List(now)
	}
}
