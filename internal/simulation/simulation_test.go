package simulation

import (
	"flag"
	"fmt"
	"runtime/debug"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/testing/seeds"
)

var (
	from  = flag.Uint64("from", 1, "the first seed of TestStories")
	count = flag.Uint64("seeds", 0, "the number of seeds; 0 is 2000, or 200 with -short")
	most  = flag.Int("shrink", 150, "stories that are played to shorten one that fails")
)

// TestStories plays the stories of seeds. A failing one prints how to play it alone, and a
// shortened story.
func TestStories(t *testing.T) {
	seeds.OneGoroutine(t)
	gc := debug.SetGCPercent(400)
	t.Cleanup(func() { debug.SetGCPercent(gc) })
	var all []uint64
	for seed := range seeds.Of(t, 2000) {
		all = append(all, seed)
	}
	if n := *count; n > 0 {
		all = all[:0]
		for seed := *from; seed < *from+n; seed++ {
			all = append(all, seed)
		}
	}
	for part := range parallel {
		t.Run(fmt.Sprint("part", part), func(t *testing.T) {
			t.Parallel()
			began, lived, digest := time.Now(), time.Duration(0), uint64(0)
			for i := part; i < len(all); i += parallel {
				seed := all[i]
				t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
					r := playSeed(t, seed)
					played.Store(seed, r.digest)
					lived += r.rooms
					digest = digest*31 + r.digest
				})
			}
			t.Logf("%.0f room-seconds in %v: %.0f a second; digest %x", lived.Seconds(), time.Since(began).Round(time.Millisecond), lived.Seconds()/time.Since(began).Seconds(), digest)
		})
	}
}

const parallel = 2

// played has the digests of the stories that TestStories has played, by seed.
var played sync.Map

func playSeed(t *testing.T, seed uint64) result {
	t.Helper()
	s := draw(seed)
	r := run(t, s, false)
	if r.finding == nil {
		return r
	}
	t.Errorf("%s, at %v: %s\nrerun: make simulate SEEDS=1 FROM=%d", r.finding.Check, r.finding.At, r.finding.Text, seed)
	if *most > 0 {
		short, last := shrink(t, s, r.finding.Check, *most)
		if last.finding != nil {
			t.Logf("shortened from %d to %d events, %s at %v: %s\n%v", len(s.Events), len(short.Events), last.finding.Check, last.finding.At, last.finding.Text, short)
		}
		if testing.Verbose() {
			for _, line := range run(t, short, true).lines {
				t.Log(line)
			}
		}
	}
	return r
}

// A seed repeats a failure only if its story is the same each time.
func TestASeedPlaysTheSameEachTime(t *testing.T) {
	seeds.OneGoroutine(t)
	for seed := range seeds.Of(t, 50) {
		if seed > 50 {
			break // make verify asks for thousands.
		}
		one, known := played.Load(seed)
		if !known {
			one = run(t, draw(seed), false).digest
		}
		if two := run(t, draw(seed), false).digest; one != two {
			t.Errorf("seed %d has the digest %x one time, %x the next: %s", seed, one, two, differ(t, seed))
		}
	}
}

// differ returns the first lines in which two plays of a seed differ.
func differ(t *testing.T, seed uint64) string {
	one, two := run(t, draw(seed), true).lines, run(t, draw(seed), true).lines
	for i := range min(len(one), len(two)) {
		if one[i] != two[i] {
			return one[i] + "\n" + two[i]
		}
	}
	return fmt.Sprintf("%d and %d lines", len(one), len(two))
}
