package token

import (
	"sync"
	"testing"
	"time"
)

// The ids of tokens are stored until the tokens would no longer be accepted, and not longer; with a
// full memory tokens are rejected until some have expired.
func TestIDsAreRememberedUntilTheyExpire(t *testing.T) {
	var s usedIDs
	id := func(n int) usedID { return usedID{byte(n), byte(n >> 8), byte(n >> 16)} }
	until := func(n int) time.Time { return noon.Add(time.Duration(n*7919%60) * time.Second) }
	for n := range maxUsedIDs {
		if got := s.use(id(n), until(n), noon); got != used {
			t.Fatalf("%d: %v", n, got)
		}
	}
	if s.use(id(7), until(7), noon) != usedBefore || s.use(id(maxUsedIDs), until(7), noon) != noMemory {
		t.Error("it is not full")
	}
	for second := range 60 {
		now := noon.Add(time.Duration(second) * time.Second)
		left := 0
		for n := range maxUsedIDs {
			if !until(n).Before(now) {
				left++
			}
		}
		first := second // of the ids that expire now: 7919 is 59 modulo 60
		if second > 0 {
			first = 60 - second
		}
		if s.use(id(first), now, now) != usedBefore {
			t.Errorf("second %d: forgotten while it may be used", second)
		}
		if s.size() != left {
			t.Errorf("second %d: %d are remembered, want %d", second, s.size(), left)
		}
	}
	if s.use(id(0), noon, noon.Add(time.Hour)) != used || s.size() != 1 {
		t.Errorf("%d are remembered after the last has expired", s.size())
	}
}

// A full memory is an error of the server, with a code of its own.
func TestAFullMemoryIsBusy(t *testing.T) {
	login := newIssuer(t, t.TempDir(), "login-1")
	v := login.verifier(t)
	for n := range maxUsedIDs {
		v.spent.use(usedID{byte(n), byte(n >> 8), byte(n >> 16)}, noon.Add(time.Minute), noon)
	}
	text := login.token(t, nil)
	if _, err := v.Verify(t.Context(), text, "lobby", noon); reasonOf(t, err) != Busy || v.Remembered() != maxUsedIDs {
		t.Errorf("%v with %d", err, v.Remembered())
	}
	text = login.token(t, map[string]any{"exp": noon.Add(3 * time.Minute).Unix()})
	if _, err := v.Verify(t.Context(), text, "lobby", noon.Add(2*time.Minute)); err != nil {
		t.Errorf("later: %v", err)
	}
}

// Of many simultaneous uses of one token, one is accepted. Two issuers may use the same id.
func TestOneOfManyUsesAToken(t *testing.T) {
	dir := t.TempDir()
	first, second := newIssuer(t, dir, "login-1"), newIssuer(t, dir, "login-2")
	v := first.verifier(t)
	for _, login := range []*issuer{first, second} {
		text := login.token(t, map[string]any{"jti": "1"})
		var in sync.WaitGroup
		outcomes := make(chan error, 32) // One of each.
		for range cap(outcomes) {
			in.Go(func() {
				_, err := v.Verify(t.Context(), text, "lobby", noon)
				outcomes <- err
			})
		}
		in.Wait()
		close(outcomes)
		accepted := 0
		for err := range outcomes {
			if err == nil {
				accepted++
			}
		}
		if accepted != 1 {
			t.Errorf("%s: %d came in", login.id, accepted)
		}
	}
}

// The id of a used token is stored for as long as the token would be accepted, which is Leeway
// after it expires.
func TestAUsedTokenIsRefusedWithinTheLeeway(t *testing.T) {
	login := newIssuer(t, t.TempDir(), "login-1")
	v := login.verifier(t)
	exp := noon.Add(time.Minute)
	text := login.token(t, map[string]any{"exp": exp.Unix()})
	if _, err := v.Verify(t.Context(), text, "lobby", exp.Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	for _, late := range []time.Duration{0, time.Second, 5 * time.Second, Leeway - time.Second} {
		if _, err := v.Verify(t.Context(), text, "lobby", exp.Add(late)); reasonOf(t, err) != Spent {
			t.Errorf("%v after it has expired: %v", late, err)
		}
	}
}
