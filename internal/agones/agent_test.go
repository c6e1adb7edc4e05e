package agones

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/netloop/netloop/internal/agones/agonestest"
)

// pipes is a network in memory: a listener, and its dial function. While it is closed, dials are
// refused.
type pipes struct {
	conns chan net.Conn
	ended chan struct{}

	mu     sync.Mutex
	closed bool
	open   []net.Conn
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	p.mu.Lock()
	closed := p.closed
	p.mu.Unlock()
	if closed {
		return nil, errors.New("connection refused")
	}
	near, far := net.Pipe()
	select {
	case p.conns <- far:
		p.mu.Lock()
		p.open = append(p.open, far)
		p.mu.Unlock()
		return near, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// cut ends all connections, and refuses new ones until it is called with false.
func (p *pipes) cut(off bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = off
	for _, c := range p.open {
		_ = c.Close()
	}
	p.open = nil
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.ended:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.ended); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// world is a server with its agent and a sidecar, in virtual time.
type world struct {
	*testing.T
	*agonestest.Sidecar
	net   *pipes
	agent *Agent
	stop  func() // ends the agent, and waits for it

	mu            sync.Mutex
	health, ready error
	load          Load
	names         []string
	ended         []error
	log           strings.Builder
}

func (w *world) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(b)
}

func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

// lines returns the number of lines of the log with a text.
func (w *world) lines(text string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for line := range strings.Lines(w.log.String()) {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// after lets virtual time pass.
func (w *world) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// wantState fails the test if Agones has another state.
func (w *world) wantState(want, when string) {
	w.Helper()
	if got := w.State(); got != want {
		w.Errorf("%s: state %s, not %s; requests %v", when, got, want, w.Requests())
	}
}

// inWorld runs a test with a sidecar in the given state.
func inWorld(t *testing.T, state string, test func(*world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, Sidecar: agonestest.New(4), net: &pipes{conns: make(chan net.Conn), ended: make(chan struct{})}}
		w.Update(func(s *agonestest.Sidecar) { s.SetState(state); s.Declare(nil, nil) })
		server := &http.Server{Handler: w.Sidecar, ReadHeaderTimeout: time.Minute}
		go func() { _ = server.Serve(w.net) }()
		w.agent = New(Config{
			Health: func() error { w.mu.Lock(); defer w.mu.Unlock(); return w.health },
			Ready:  func() error { w.mu.Lock(); defer w.mu.Unlock(); return w.ready },
			Load:   func() Load { w.mu.Lock(); defer w.mu.Unlock(); return w.load },
			Names: func(limit int) []string {
				w.mu.Lock()
				defer w.mu.Unlock()
				return slices.Clone(w.names[:min(limit, len(w.names))])
			},
			Labels:      map[string]string{"netloop-schema": "-a b-"},
			Annotations: map[string]string{"netloop-version": "arena 2.1, netloop v1"},
			Shutdown:    func(err error) { w.set(func() { w.ended = append(w.ended, err) }) },
			Log:         slog.New(slog.NewTextHandler(w, nil)),
		})
		w.agent.client = newClient(DefaultPort, w.net.dial)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			w.agent.Run(ctx)
		}()
		w.stop = func() { cancel(); <-done }
		test(w)
		w.stop()
		w.net.cut(true)
		_ = server.Close()
		if t.Failed() {
			t.Log(w.log.String())
		}
	})
}

var errStarting = errors.New("the server is starting")

func TestAServerIsReadyOnce(t *testing.T) {
	inWorld(t, "Scheduled", func(w *world) {
		w.set(func() { w.ready = errStarting })
		w.after(5 * time.Second)
		w.wantState("Scheduled", "while the server starts")
		w.set(func() { w.ready = nil })
		w.after(time.Second)
		w.wantState("Ready", "after the start")
		w.set(func() { w.ready = errors.New("the room is full") })
		w.after(time.Minute)
		w.set(func() { w.ready = nil })
		w.after(time.Hour)
		if n := w.Count("ready"); n != 1 {
			w.Errorf("%d requests for ready", n)
		}
	})
}

// A server with clients is Allocated, and is offered again when it has been empty for a minute.
func TestAServerWithClientsIsAllocated(t *testing.T) {
	inWorld(t, "Scheduled", func(w *world) {
		w.after(time.Second)
		w.set(func() { w.load.Used = true })
		w.after(time.Second)
		w.wantState("Allocated", "with a client")
		w.after(time.Hour)
		w.set(func() { w.load.Used = false })
		w.after(emptyTime - 2*time.Second)
		w.wantState("Allocated", "soon after the last client")
		w.set(func() { w.load.Used = true })
		w.after(time.Second)
		w.set(func() { w.load.Used = false })
		w.after(emptyTime - 2*time.Second)
		w.wantState("Allocated", "soon after another client")
		w.after(4 * time.Second)
		w.wantState("Ready", "a minute after the last client")
		w.set(func() { w.load.Used = true })
		w.after(time.Second)
		w.wantState("Allocated", "with the next client")
		if n := w.Count("allocate"); n != 2 {
			w.Errorf("%d requests for allocation", n)
		}
	})
}

// An allocation by a matchmaker waits for its players, and a restarted container keeps it.
func TestAnAllocationOfOthersIsKeptForAMinute(t *testing.T) {
	inWorld(t, "Allocated", func(w *world) {
		w.after(emptyTime - time.Second)
		w.wantState("Allocated", "before the players")
		w.after(3 * time.Second)
		w.wantState("Ready", "without players")
		w.after(10 * time.Second)
		w.Update(func(s *agonestest.Sidecar) { s.SetState("Allocated") })
		w.after(emptyTime - 2*time.Second)
		w.wantState("Allocated", "before the players of the second allocation")
	})
}

func TestFinalStatesAreNotLeft(t *testing.T) {
	for _, state := range []string{"Unhealthy", "Error", "Shutdown"} {
		inWorld(t, state, func(w *world) {
			w.set(func() { w.load.Used = true })
			w.after(time.Minute)
			w.wantState(state, "at the end")
		})
	}
}

func TestAReservedServerIsAllocatedByItsClients(t *testing.T) {
	inWorld(t, "Reserved", func(w *world) {
		w.after(time.Minute)
		w.wantState("Reserved", "without clients")
		w.set(func() { w.load.Used = true })
		w.after(time.Second)
		w.wantState("Allocated", "with a client")
	})
}

// Health requests depend on ticks alone: not on readiness, and not on other requests that hang.
func TestHealthRequestsFollowTicksAlone(t *testing.T) {
	inWorld(t, "Scheduled", func(w *world) {
		w.set(func() { w.ready = errStarting })
		w.Fail(func(rw http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/health" {
				return false
			}
			hang(r)
			return true
		})
		w.after(20 * time.Second)
		if n := w.Count("health"); n < 19 || n > 21 {
			w.Errorf("%d health requests in 20 s without a known period", n)
		}
		w.Fail(nil)
		w.after(30 * time.Second) // The period is 4 s.
		was := w.Count("health")
		w.after(20 * time.Second)
		if n := w.Count("health") - was; n < 9 || n > 11 {
			w.Errorf("%d health requests in five periods", n)
		}
		w.set(func() { w.health = errors.New("no tick ended for 3s, limit 2s") })
		w.after(5 * time.Second)
		was = w.Count("health")
		w.after(time.Minute)
		if n := w.Count("health") - was; n != 0 {
			w.Errorf("%d health requests while no tick ends", n)
		}
		w.set(func() { w.health = nil })
		w.after(20 * time.Second)
		if n := w.Count("health") - was; n < 9 {
			w.Errorf("%d health requests after ticks run again", n)
		}
		if n := w.lines("no tick ended"); n != 1 {
			w.Errorf("the stop is logged %d times", n)
		}
	})
}

// hang reads a request, and waits until its client gives up.
func hang(r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// A sidecar that is away, slow or wrong is logged once, asked with pauses, and found again.
func TestASidecarThatFails(t *testing.T) {
	answer := func(status int, body string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Location", "http://localhost:9358/gameserver")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
			return true
		}
	}
	for name, fault := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"away":            nil,
		"garbage":         answer(200, "\x00\xff{]"),
		"other JSON":      answer(200, `{"a":[1,2]}`),
		"null":            answer(200, `null`),
		"number":          answer(200, `{"status":{"state":7}}`),
		"endless state":   answer(200, `{"status":{"state":"`+strings.Repeat("x", 100)+`"}}`),
		"refusal":         answer(500, `{"code":2,"message":"`+strings.Repeat("no ", 1000)+`"}`),
		"redirect":        answer(302, ""),
		"empty":           answer(200, ""),
		"no content":      answer(204, ""),
		"too large":       answer(200, `{"status":{"state":"Unhealthy"}}`+strings.Repeat(" ", 2*maxAnswer)),
		"large line":      answer(200, `{"result":{"status":{"state":"Unhealthy"}},"a":"`+strings.Repeat("x", 2*maxAnswer)+`"}`+"\n"),
		"an error result": answer(200, `{"error":{"code":14,"message":"unavailable"}}`),
		"slow": func(_ http.ResponseWriter, r *http.Request) bool {
			hang(r)
			return true
		},
		"half an answer": func(w http.ResponseWriter, r *http.Request) bool {
			_, _ = io.WriteString(w, `{"status":`)
			_ = http.NewResponseController(w).Flush()
			hang(r)
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, "Scheduled", func(w *world) {
				var asked int
				if fault == nil {
					w.net.cut(true)
				} else {
					w.Fail(func(rw http.ResponseWriter, r *http.Request) bool {
						if r.URL.Path == "/gameserver" {
							w.set(func() { asked++ })
						}
						return fault(rw, r)
					})
				}
				w.after(3 * time.Minute)
				w.wantState("Scheduled", "while the sidecar fails")
				if asked > 25 {
					w.Errorf("it was asked %d times in three minutes", asked)
				}
				for _, kind := range []string{"gameserver", "watch"} {
					if n := w.lines("does not answer; the server continues, and tries again\" request=" + kind); n != 1 {
						w.Errorf("the failure of %s is logged %d times", kind, n)
					}
				}
				w.net.cut(false)
				w.Fail(nil)
				w.after(30 * time.Second)
				w.wantState("Ready", "when the sidecar answers again")
				if n := w.lines("answers again"); n < 2 || n > 3 {
					w.Errorf("the recovery is logged %d times", n)
				}
				if len(w.ended) > 0 || w.lines("Unhealthy") > 0 {
					w.Errorf("a wrong answer had an effect; the server was ended: %v", w.ended)
				}
			})
		})
	}
}

// After a restart of the sidecar the watch continues, and labels are set again.
func TestASidecarThatRestarts(t *testing.T) {
	inWorld(t, "Scheduled", func(w *world) {
		w.after(5 * time.Second)
		w.net.cut(true)
		w.after(5 * time.Second)
		w.net.cut(false)
		w.after(30 * time.Second)
		if n := w.Count("setlabel"); n != 2 {
			w.Errorf("the label was set %d times", n)
		}
		w.Update(func(s *agonestest.Sidecar) { s.SetState("Shutdown") })
		synctest.Wait()
		if len(w.ended) != 1 {
			w.Errorf("ends: %v", w.ended)
		}
	})
}

func TestAgonesEndsTheServerOnce(t *testing.T) {
	for want, change := range map[string]func(*agonestest.Sidecar){
		"its state is Shutdown": func(s *agonestest.Sidecar) { s.SetState("Shutdown") },
		"removed by Agones":     (*agonestest.Sidecar).Delete,
	} {
		inWorld(t, "Scheduled", func(w *world) {
			w.after(5 * time.Second)
			w.Update(change)
			synctest.Wait()
			w.Update(change)
			w.after(time.Minute)
			if len(w.ended) != 1 || !strings.Contains(w.ended[0].Error(), want) {
				w.Errorf("ends: %v, not one with %q", w.ended, want)
			}
		})
	}
}

// A watch that is silent although the state changed is not the only source.
func TestThePollFindsAState(t *testing.T) {
	inWorld(t, "Scheduled", func(w *world) {
		w.Fail(func(_ http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/watch/gameserver" {
				return false
			}
			hang(r)
			return true
		})
		w.after(time.Minute)
		w.Update(func(s *agonestest.Sidecar) { s.SetState("Shutdown") })
		w.after(pollTime + pace)
		if len(w.ended) != 1 {
			w.Errorf("ends: %v", w.ended)
		}
	})
}

// The sidecar is read once in 10 s besides the watch, and has 2 s for each answer.
func TestTheSidecarIsReadSeldom(t *testing.T) {
	inWorld(t, "Scheduled", func(w *world) {
		read := 0
		w.Fail(func(_ http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/gameserver" {
				w.set(func() { read++ })
				time.Sleep(1900 * time.Millisecond)
			}
			return false
		})
		w.after(10 * time.Minute)
		w.wantState("Ready", "with slow answers")
		if read < 48 || read > 60 || w.lines("does not answer") > 0 {
			w.Errorf("it was read %d times in ten minutes, want one in 10 to 12.5 s", read)
		}
	})
}

// The last request is the end, also while the sidecar has failed until then.
func TestTheEndIsTold(t *testing.T) {
	inWorld(t, "Scheduled", func(w *world) {
		w.after(time.Second)
		w.net.cut(true)
		w.after(time.Minute)
		go func() {
			time.Sleep(2 * time.Second)
			w.net.cut(false)
		}()
		w.stop()
		w.wantState("Shutdown", "after the end")
	})
	inWorld(t, "Scheduled", func(w *world) {
		w.net.cut(true)
		begin := time.Now()
		w.stop()
		if took := time.Since(begin); took > shutdownTime+time.Second {
			w.Errorf("the end took %v without a sidecar", took)
		}
	})
}

func TestLabelsAreSet(t *testing.T) {
	inWorld(t, "Scheduled", func(w *world) {
		w.after(time.Hour)
		labels, annotations := w.Labels()
		if got := labels["agones.dev/sdk-netloop-schema"]; got != "a-b" {
			w.Errorf("label %q", got)
		}
		if got := annotations["agones.dev/sdk-netloop-version"]; got != "arena 2.1, netloop v1" {
			w.Errorf("annotation %q", got)
		}
		if n := w.Count("setlabel"); n > int(time.Hour/watchTime)+1 {
			w.Errorf("the label was set %d times", n)
		}
	})
}

func TestALabelIsValid(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "arena": "arena", "two words": "two-words", "-.a_b.-": "a_b", "(devel)": "devel", "ä": "",
		strings.Repeat("a", 70): strings.Repeat("a", 63), strings.Repeat("a", 62) + "-b": strings.Repeat("a", 62),
	} {
		if got := labelValue(text); got != want {
			t.Errorf("%q: %q, not %q", text, got, want)
		}
	}
}

// Counters and the list are written if the fleet declares them: bounded, seldom, and again if
// Agones has other values.
func TestHintsAreWritten(t *testing.T) {
	inWorld(t, "Scheduled", func(w *world) {
		w.set(func() { w.load, w.names = Load{Used: true, Rooms: 2, Players: 900}, []string{"oak", "elm", "ash"} })
		w.after(time.Minute)
		if n := w.Count("setcountcounter") + w.Count("updatelist"); n != 0 {
			w.Errorf("%d writes without a declaration", n)
		}
		w.Update(func(s *agonestest.Sidecar) {
			s.Declare(map[string]agonestest.Counter{"rooms": {Count: 0, Capacity: 10}, "players": {Count: 0, Capacity: 500}}, map[string]agonestest.List{"rooms": {Capacity: 2}})
		})
		w.after(20 * time.Second)
		check := func(when string, rooms, players int64, names ...string) {
			w.Helper()
			got := fmt.Sprint(w.Counter("rooms"), w.Counter("players"), w.List("rooms").Values)
			want := fmt.Sprint(agonestest.Counter{Count: rooms, Capacity: 10}, agonestest.Counter{Count: players, Capacity: 500}, names)
			if got != want {
				w.Errorf("%s: %s, not %s", when, got, want)
			}
		}
		check("after the declaration", 2, 500, "oak", "elm")
		was := w.Count("setcountcounter")
		w.after(time.Minute)
		if n := w.Count("setcountcounter") - was; n != 0 {
			w.Errorf("%d writes of equal values", n)
		}
		for i := range 60 {
			w.set(func() { w.load.Players = i })
			w.after(time.Second)
		}
		if n := w.Count("setcountcounter") - was; n > 13 {
			w.Errorf("%d writes in a minute", n)
		}
		w.Update(func(s *agonestest.Sidecar) {
			s.Declare(map[string]agonestest.Counter{"rooms": {Count: 7, Capacity: 10}, "players": {Count: 9, Capacity: 500}}, map[string]agonestest.List{"rooms": {Values: []string{"fir"}, Capacity: 2}})
		})
		w.after(pollTime + 2*hintTime)
		check("after others have changed them", 2, 59, "oak", "elm")
	})
}

// Every change of a state is logged once.
func TestStatesAreLoggedOnce(t *testing.T) {
	inWorld(t, "Scheduled", func(w *world) {
		w.after(time.Hour)
		for _, state := range []string{"Scheduled", "Ready"} {
			if n := w.lines("state=" + state); n != 1 {
				w.Errorf("%s is logged %d times", state, n)
			}
		}
	})
}

// A state from before the answer to Ready, which arrives after it, is not logged again.
func TestALateStateIsNotLoggedAgain(t *testing.T) {
	var out bytes.Buffer
	a := New(Config{Log: slog.New(slog.NewTextHandler(&out, nil))})
	for _, s := range []state{"Scheduled", "Scheduled", ready} {
		a.saw(&gameServer{state: s})
		if s != ready {
			a.lifecycle.did(toReady, a.now())
		}
	}
	if got := strings.Count(out.String(), "state in Agones"); got != 2 || a.lifecycle.state != ready {
		t.Errorf("%d states are logged, and the last one is %s:\n%s", got, a.lifecycle.state, &out)
	}
}

func FuzzGameServer(f *testing.F) {
	f.Add([]byte(`{"object_meta":{"deletion_timestamp":"0"},"spec":{"health":{"period_seconds":5}},"status":{"state":"Ready","counters":{"rooms":{"count":"1","capacity":"10"}},"lists":{"rooms":{"values":["oak"],"capacity":"2"}}}}`))
	f.Add([]byte(`{"result":{"status":{"state":"Shutdown","counters":null}}}`))
	f.Add([]byte(`{"error":{"message":"unavailable"}}`))
	f.Add([]byte(`{"status":{"state":"Ready"},"spec":{"health":{"period_seconds":"-9223372036854775808"}}}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, decode := range []func([]byte) (*gameServer, error){decodeGameServer, decodeWatched} {
			g, err := decode(text)
			switch {
			case err != nil:
			case g.state == unknown || len(g.state) > maxState:
				t.Errorf("state %q", g.state)
			case g.period < 0 || g.period > 24*time.Hour:
				t.Errorf("period %v", g.period)
			}
		}
	})
}
