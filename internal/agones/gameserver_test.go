package agones

import (
	"strings"
	"testing"
	"time"
)

// The parts of a GameServer that the server uses are decoded, and bounded.
func TestAGameServerIsDecoded(t *testing.T) {
	g, err := decodeGameServer([]byte(`{"object_meta":{"deletion_timestamp":"1700000000"},"spec":{"health":{"period_seconds":5}},` +
		`"status":{"state":"Ready","counters":{"rooms":{"count":"1","capacity":10}},"lists":{"rooms":{"values":["oak"],"capacity":null}}}}`))
	if err != nil || g.state != ready || !g.deleted || g.period != 5*time.Second || g.counters["rooms"] != (counter{1, 10}) ||
		len(g.lists["rooms"].Values) != 1 || g.lists["rooms"].Capacity != 0 {
		t.Errorf("%+v, %v", g, err)
	}
	for period, want := range map[string]time.Duration{
		`-1`: 0, `0`: 0, `"1"`: time.Second, `86400`: 24 * time.Hour, `86401`: 24 * time.Hour, `"9223372036854775807"`: 24 * time.Hour,
	} {
		g, err := decodeGameServer([]byte(`{"spec":{"health":{"period_seconds":` + period + `}},"status":{"state":"x"}}`))
		if err != nil || g.period != want || g.deleted {
			t.Errorf("a period of %s is %+v, %v, want %v", period, g, err, want)
		}
	}
	for text, valid := range map[string]bool{
		`{"status":{"state":"` + strings.Repeat("x", maxState) + `"}}`:   true,
		`{"status":{"state":"` + strings.Repeat("x", maxState+1) + `"}}`: false,
		`{"status":{"state":""}}`:                        false,
		`{"spec":{"health":{"period_seconds":"x"}}}`:     false,
		`{"spec":{"health":{"period_seconds":""}}}`:      false,
		`{"status":{"state":"x"},"spec":{"health":[1]}}`: false,
	} {
		if _, err := decodeGameServer([]byte(text)); (err == nil) != valid {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A message of a watch has a GameServer, or an error of the sidecar.
func TestAMessageOfAWatchIsDecoded(t *testing.T) {
	if g, err := decodeWatched([]byte(`{"result":{"status":{"state":"Ready"}}}`)); err != nil || g.state != ready {
		t.Errorf("%+v, %v", g, err)
	}
	for text, want := range map[string]string{
		`{"error":{"message":"unavailable"}}`: "the sidecar has an error: \"unavailable\"",
		`{}`:                                  errNoState.Error(),
		`{"result":null}`:                     errNoState.Error(),
		`{"result":{"status":{"state":""}}}`:  errNoState.Error(),
		`[`:                                   "it is not the GameServer",
	} {
		if _, err := decodeWatched([]byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// Each state has its requests: only a server that was never offered is offered by itself, only one
// with clients is allocated, and an empty one is offered again after emptyTime.
func TestRequestsOfEachState(t *testing.T) {
	const now = time.Hour
	for _, c := range []struct {
		state              state
		asked, ready, used bool
		empty              time.Duration // time since the last use
		want               string
	}{
		{state: unknown, ready: true, used: true},
		{state: requestReady, ready: true, used: true},
		{state: shutdown, ready: true, used: true},
		{state: unhealthy, ready: true, used: true},
		{state: failed, ready: true, used: true},
		{state: "Scheduled", ready: true, want: toReady},
		{state: "Scheduled", ready: true, used: true, want: toReady},
		{state: "Scheduled"},
		{state: ready, ready: true, want: toReady},
		{state: ready, ready: true, asked: true},
		{state: ready, asked: true},
		{state: ready},
		{state: ready, used: true, want: toAllocated},
		{state: ready, asked: true, used: true, want: toAllocated},
		{state: reserved, ready: true},
		{state: reserved, ready: true, asked: true},
		{state: reserved, used: true, want: toAllocated},
		{state: allocated, ready: true, empty: emptyTime, want: toReady},
		{state: allocated, ready: true, empty: emptyTime - 1},
		{state: allocated, ready: true, used: true, empty: emptyTime},
		{state: allocated, empty: emptyTime},
	} {
		l := lifecycle{state: c.state, asked: c.asked, used: now - c.empty}
		if got := l.next(now, c.ready, c.used); got != c.want {
			t.Errorf("%+v: request %q", c, got)
		}
		if want := now - c.empty; c.used && l.used != now || !c.used && l.used != want {
			t.Errorf("%+v: used at %v", c, l.used)
		}
	}
}

// A positive answer is the state that was requested, until the sidecar reports another one.
func TestAPositiveAnswerIsTheState(t *testing.T) {
	l := lifecycle{state: "Scheduled"}
	if !l.did(toReady, 1) || l.state != requestReady || !l.asked || l.used != 0 {
		t.Errorf("after ready: %+v", l)
	}
	if !l.saw(ready, 2) || l.saw(ready, 3) || l.used != 0 {
		t.Errorf("a state is new twice, or is a use: %+v", l)
	}
	if !l.did(toAllocated, 4) || l.state != allocated || l.used != 4 {
		t.Errorf("after the allocation: %+v", l)
	}
	if l.saw(allocated, 5) || l.used != 4 {
		t.Errorf("an allocation begins again: %+v", l)
	}
	if l.did(toShutdown, 6) || l.state != allocated {
		t.Errorf("after the last request: %+v", l)
	}
}

// Health requests are sent twice in the period of the fleet, within bounds.
func TestTheIntervalOfHealthRequests(t *testing.T) {
	for server, want := range map[*gameServer]time.Duration{
		nil:                               time.Second,
		{}:                                time.Second,
		{period: 1}:                       500 * time.Millisecond,
		{period: 1200 * time.Millisecond}: 600 * time.Millisecond,
		{period: 4 * time.Second}:         2 * time.Second,
		{period: time.Hour}:               5 * time.Second,
	} {
		if got := (&Agent{server: server}).healthInterval(); got != want {
			t.Errorf("%+v: %v, want %v", server, got, want)
		}
	}
	for pause, want := range map[time.Duration]time.Duration{minPause: 2 * minPause, maxPause / 2: maxPause, maxPause: maxPause} {
		if got := longer(pause); got != want {
			t.Errorf("after %v: %v, want %v", pause, got, want)
		}
	}
}
