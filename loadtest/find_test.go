package loadtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// The search finds the largest number that passes, within 5 %, in few runs.
func TestSearchNarrowsTheKnee(t *testing.T) {
	for _, limit := range []int{1, 2, 3, 9, 10, 11, 63, 64, 100, 777, 1999, 2000, 5000} {
		tries := 0
		knee, broken, err := search(10, 2000, func(n int) (bool, error) {
			if tries++; n < 1 || n > 2000 {
				t.Fatalf("it tries %d clients", n)
			}
			return n <= limit, nil
		})
		if err != nil || tries > 22 {
			t.Errorf("limit %d: %d tries, %v", limit, tries, err)
		}
		if limit >= 2000 {
			if knee != 2000 || broken != 0 {
				t.Errorf("limit %d: %d, %d", limit, knee, broken)
			}
			continue
		}
		if knee > limit || broken <= limit || float64(broken-knee) > max(1, 0.05*float64(knee)) {
			t.Errorf("limit %d: %d pass, %d do not", limit, knee, broken)
		}
	}
	if knee, broken, _ := search(10, 100, func(int) (bool, error) { return false, nil }); knee != 0 || broken != 1 {
		t.Errorf("without a client that passes: %d, %d", knee, broken)
	}
}

// Although other work of the machine disturbs one run in ten, three searches agree within 5 % each
// way, for nearly every seed.
func TestSearchesAgree(t *testing.T) {
	agree := 0
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 0))
		least, most := 1<<30, 0
		for range 3 {
			o := &options{clients: 2000, from: 10, transport: "quic"}
			s, err := find(t.Context(), o, func(_ context.Context, o options) (*report, error) {
				met := o.clients <= 700 && rng.IntN(10) > 0
				return &report{Result: Result{Verdict: Verdict{Pass: met}}}, nil
			}, func(string) {}, func(context.Context) {})
			if err != nil {
				t.Fatal(err)
			}
			least, most = min(least, s.Knee), max(most, s.Knee)
		}
		if most <= 700 && float64(most-least) <= 0.1*float64(most) {
			agree++
		}
	}
	if agree < 18 {
		t.Errorf("%d of 20 triples agree", agree)
	}
}

// A machine that is slower for some minutes, at any time of a search, does not end it early: the
// limit that was found meanwhile is tried again.
func TestASlowPhaseDoesNotEndASearch(t *testing.T) {
	const limit, slow, phase = 700, 500, 3
	for begin := range 30 {
		tries := 0
		knee, _, err := search(10, 2000, func(n int) (bool, error) {
			tries++
			if begin <= tries && tries < begin+phase {
				return n <= slow, nil
			}
			return n <= limit, nil
		})
		if err != nil || knee > limit || knee < limit*9/10 {
			t.Errorf("slow from try %d: %d clients of %d, %v", begin, knee, limit, err)
		}
	}
}

func TestTheSaturatedSideIsNamed(t *testing.T) {
	x := func(v float64) *float64 { return &v }
	for want, change := range map[string]func(*Result){
		"neither":   func(*Result) {},
		"generator": func(r *Result) { r.Generator.Process.CPU = x(1.9) },
		"server":    func(r *Result) { r.Server.Process.CPU = x(0.95) },
		"both":      func(r *Result) { r.Saturated = true; r.Server.Tick.P99 = x(8) },
	} {
		r := &Result{Server: Server{Budget: x(16), Tick: Spread{P99: x(7)}, Process: Process{CPU: x(0.5), Cores: x(1)}}}
		r.Generator.Process = Process{CPU: x(1), Cores: x(2)}
		change(r)
		if got := saturatedSide(r); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// The load client is the limit only if it was in each run of the broken number.
func TestTheSaturatedSideIsOfAllRuns(t *testing.T) {
	for want, sides := range map[string][]string{
		"neither": {"neither", "neither", "neither"}, "server": {"neither", "server", "neither"},
		"generator": {"generator", "neither", "generator"}, "both": {"server", "server", "generator"},
	} {
		x, n := 1.0, 0
		run := func(_ context.Context, o options) (*report, error) {
			if o.clients <= 10 {
				return &report{Result: Result{Verdict: Verdict{Pass: true}}}, nil
			}
			side := sides[n%findTries]
			n++
			r := Result{Saturated: side == "generator"}
			if side == "server" {
				r.Server.Tick.P99, r.Server.Budget = &x, &x
			}
			return &report{Result: r}, nil
		}
		s, err := find(t.Context(), &options{clients: 2000, from: 10, transport: "quic"}, run, func(string) {}, func(context.Context) {})
		if err != nil || s.Saturated != want || s.Knee != 10 {
			t.Errorf("%v: %+v, %v, want %s", sides, s, err, want)
		}
	}
}

// The outcome of a search decides its first line and its status, and an interrupt or an error
// keeps the measured steps.
func TestTheOutcomeOfASearch(t *testing.T) {
	for _, c := range []struct {
		s     Search
		exit  int
		first string
	}{
		{Search{Knee: 40, Broken: 42, Saturated: "server"}, 0, "KNEE: 40 clients; at 42 a threshold breaks, saturated: server"},
		{Search{Knee: 40}, 0, "40 clients meet each threshold, which is the limit"},
		{Search{Broken: 1}, 99, "KNEE: 0 clients"},
		{Search{Knee: 40, Broken: 42, Saturated: "generator"}, 99, "INVALID: the load client is the limit, at 42"},
		{Search{Knee: 40, Interrupted: true}, 105, "INTERRUPTED: at least 40"},
	} {
		var text, js strings.Builder
		if err := errors.Join(c.s.write("text", &text), c.s.write("json", &js)); err != nil {
			t.Fatal(err)
		}
		if got := c.s.exit(); got != c.exit || !strings.HasPrefix(text.String(), c.first) || !strings.Contains(js.String(), fmt.Sprintf(`"knee": %d`, c.s.Knee)) {
			t.Errorf("exit %d: %s%s", got, &text, &js)
		}
	}
	runs := 0
	o := &options{clients: 100, from: 10, transport: "quic"}
	s, err := find(t.Context(), o, func(_ context.Context, o options) (*report, error) {
		switch runs++; {
		case runs == 3: // It is overloaded for a moment.
			return nil, errors.New("busy")
		case runs > 4:
			return nil, errors.New("no client could connect")
		}
		return &report{Result: Result{Verdict: Verdict{Pass: true}}}, nil
	}, func(string) {}, func(context.Context) {})
	if err == nil || len(s.Steps) != 3 || s.Knee != 23 || runs != 4+findTries {
		t.Errorf("%+v, %v", s, err)
	}
	// The default thresholds of the server need its figures.
	if err := o.parseFind(); err != nil || len(o.bounds) != len(clientBounds) {
		t.Errorf("%v, %v", o.thresholds, err)
	}
	o.thresholds, o.admin = nil, "http://x"
	if err := o.parseFind(); err != nil || len(o.bounds) != len(clientBounds)+len(serverBounds) {
		t.Errorf("%v, %v", o.thresholds, err)
	}
}

// After a failed run find waits until the server is no longer overloaded, if it can be asked.
func TestFindRestsUntilTheServerIsCalm(t *testing.T) {
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		_, _ = fmt.Fprintf(w, "netloop_overload_level %d\n", max(3-asked, 0))
	}))
	defer s.Close()
	o := &options{duration: time.Millisecond, admin: s.URL}
	if o.rest(t.Context()); asked != 3 {
		t.Errorf("%d questions until it is calm", asked)
	}
	o.admin = ""
	if o.rest(t.Context()); asked != 3 {
		t.Error("a server is asked without --admin")
	}
	o.admin = s.URL
	s.Close()
	o.rest(t.Context()) // It does not wait for a server that has gone.
}
