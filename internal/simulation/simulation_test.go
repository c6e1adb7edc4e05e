package simulation

import (
	"flag"
	"fmt"
	"runtime/debug"
	"strconv"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/testing/seeds"
)

var (
	from  = flag.Uint64("from", 1, "the first seed of TestStories")
	count = flag.Uint64("seeds", 0, "the number of seeds; 0 is 1000, or 200 with -short")
	most  = flag.Int("shrink", 150, "stories that are played to shorten one that fails")
)

// TestStories plays the stories of seeds. A failing one prints how to play it alone, and a
// shortened story.
func TestStories(t *testing.T) {
	seeds.OneGoroutine(t)
	gc := debug.SetGCPercent(400)
	t.Cleanup(func() { debug.SetGCPercent(gc) })
	var all []uint64
	for seed := range seeds.Of(t, 1000) {
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
			began, lived := time.Now(), time.Duration(0)
			for i := part; i < len(all); i += parallel {
				seed := all[i]
				t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { lived += playSeed(t, seed) })
			}
			t.Logf("%.0f room-seconds in %v: %.0f a second", lived.Seconds(), time.Since(began).Round(time.Millisecond), lived.Seconds()/time.Since(began).Seconds())
		})
	}
}

const parallel = 2

func playSeed(t *testing.T, seed uint64) time.Duration {
	t.Helper()
	s := draw(seed)
	r := run(t, s, false)
	if r.finding == nil {
		return r.rooms
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
	return r.rooms
}

// A seed repeats a failure only if its story is the same each time.
func TestASeedPlaysTheSameEachTime(t *testing.T) {
	seeds.OneGoroutine(t)
	for seed := range seeds.Of(t, 50) {
		if seed > 50 {
			break // make verify asks for thousands.
		}
		one, two := run(t, draw(seed), false), run(t, draw(seed), false)
		if one.digest != two.digest {
			t.Errorf("seed %d has the digest %x one time, %x the next: %s", seed, one.digest, two.digest, differ(t, seed))
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
