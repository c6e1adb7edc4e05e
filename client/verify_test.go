package client

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/netvar"
)

// A client asks for digests while somebody wants to know, every five quarters of a second, and
// gives up after ten.
func TestDigestsAreAskedForWhileSomebodyWantsToKnow(t *testing.T) {
	r := newJoined(t)
	if r.frame(time.Second); r.verify.asked != 0 {
		t.Error("it asks, and nobody wants to know")
	}
	var got []string
	began := r.clock.Now()
	r.Verify(func(err error) { got = append(got, fmt.Sprint("first ", err)) })
	var asked []time.Duration
	for r.clock.Now() < began+9990*ms {
		was := r.verify.asked
		if r.frame(10 * ms); r.verify.asked != was {
			asked = append(asked, r.verify.asked-began)
		}
		if r.clock.Now() == began+5*time.Second {
			r.Verify(func(err error) { got = append(got, fmt.Sprint("second ", err != nil)) })
		}
	}
	want := []time.Duration{10 * ms, 1260 * ms, 2510 * ms, 3760 * ms, 5010 * ms, 6260 * ms, 7510 * ms, 8760 * ms}
	if !slices.Equal(asked, want) || got != nil {
		t.Errorf("asked at %v, want %v; told %q", asked, want, got)
	}
	r.frame(10 * ms)
	if want := []string{"first client: no digest could be compared within 10s", "second true"}; !slices.Equal(got, want) {
		t.Errorf("after ten seconds told %q, want %q", got, want)
	}
	r.Verify(func(error) {})
	if r.frame(10 * ms); r.verify.asked != began+10010*ms {
		t.Errorf("another question is asked at %v", r.verify.asked-began)
	}
}

// A client that is not connected asks nobody.
func TestAQuestionBeforeTheConnectionWaits(t *testing.T) {
	r := newRig(t)
	var got error
	r.Verify(func(err error) { got = err })
	r.frame(time.Minute)
	if r.verify.asked != 0 || got != nil {
		t.Errorf("asked at %v, told %v", r.verify.asked, got)
	}
}

// Digests that differ are told, and counted, and the full state is asked for.
func TestADigestThatDiffersIsToldAndHealed(t *testing.T) {
	r := newJoined(t)
	var got []error
	for range 2 {
		r.Verify(func(err error) { got = append(got, err) })
	}
	r.verify.compared(r.Client, netvar.DigestNone)
	if got != nil {
		t.Errorf("without a digest told %v", got)
	}
	r.verify.compared(r.Client, netvar.DigestUnequal)
	if s := r.Stats(); len(got) != 2 || !errors.Is(got[0], ErrDiverged) || s.Unequal != 1 || s.FullStates != 1 {
		t.Errorf("told %v, %d unequal, %d full states", got, s.Unequal, s.FullStates)
	}
	r.Verify(func(err error) { got = append(got, err) })
	r.verify.compared(r.Client, netvar.DigestEqual)
	if s := r.Stats(); len(got) != 3 || got[2] != nil || s.Unequal != 1 {
		t.Errorf("told %v, %d unequal", got, s.Unequal)
	}
}
