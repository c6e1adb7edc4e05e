package client

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/transport"
)

// A client requests digests while a Verify waits, every five quarters of a second, and gives up
// after ten seconds.
func TestDigestsAreRequestedWhileAVerifyWaits(t *testing.T) {
	r := newJoined(t)
	if r.frame(time.Second); r.receiver.verify.next != 0 {
		t.Error("it asks, and nobody wants to know")
	}
	var got []string
	began := r.clock.Now()
	r.Verify(func(err error) { got = append(got, fmt.Sprint("first ", err)) })
	var asked []time.Duration
	for r.clock.Now() < began+9990*ms {
		was := r.receiver.verify.next
		if r.frame(10 * ms); r.receiver.verify.next != was {
			asked = append(asked, r.clock.Now()-began)
			if kinds := r.sent(); !slices.Contains(kinds, transport.DigestRequest) {
				t.Errorf("at %v it has sent %v", asked[len(asked)-1], kinds)
			}
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
	if r.frame(10 * ms); r.receiver.verify.next != began+11260*ms {
		t.Errorf("another question may be asked again at %v", r.receiver.verify.next-began)
	}
}

// A client that is not connected sends no request.
func TestAQuestionBeforeTheConnectionWaits(t *testing.T) {
	r := newRig(t)
	var got error
	r.Verify(func(err error) { got = err })
	r.frame(time.Minute)
	if r.receiver.verify.next != 0 || got != nil {
		t.Errorf("asked until %v, told %v", r.receiver.verify.next, got)
	}
}

// Digests that differ are told, and counted, and the full state is asked for.
func TestADigestThatDiffersIsToldAndHealed(t *testing.T) {
	r := newJoined(t)
	var got []error
	for range 2 {
		r.Verify(func(err error) { got = append(got, err) })
	}
	r.receiver.digestCompared(replica.DigestNone)
	if got != nil {
		t.Errorf("without a digest told %v", got)
	}
	r.receiver.digestCompared(replica.DigestUnequal)
	if s := r.Stats(); len(got) != 2 || !errors.Is(got[0], ErrDiverged) || s.Unequal != 1 || s.FullStates != 1 {
		t.Errorf("told %v, %d unequal, %d full states", got, s.Unequal, s.FullStates)
	}
	if kinds := r.sent(); !slices.Contains(kinds, transport.FullStateRequest) {
		t.Errorf("it has sent %v", kinds)
	}
	r.Verify(func(err error) { got = append(got, err) })
	r.receiver.digestCompared(replica.DigestEqual)
	if s := r.Stats(); len(got) != 3 || got[2] != nil || s.Unequal != 1 {
		t.Errorf("told %v, %d unequal", got, s.Unequal)
	}
}
