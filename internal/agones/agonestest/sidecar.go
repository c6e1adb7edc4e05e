// Package agonestest has a test double of the sidecar of Agones, and the tests that the double and
// the real sidecar (sdk-server --local) both pass.
//
//	Sidecar      an http.Handler with the state of one GameServer, and faults
//	Conformance  the requests of Agones' own conformance list, with their answers
package agonestest

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Counter is a counter of a GameServer.
type Counter struct{ Count, Capacity int64 }

// List is a list of a GameServer.
type List struct {
	Values   []string
	Capacity int64
}

// Sidecar behaves as sdk-server --local: it begins in the state Ready, with the counter rooms and
// the list players. Any goroutine may use it.
type Sidecar struct {
	mu       sync.Mutex
	state    string
	deleted  int64
	period   int64
	created  int64
	counters map[string]Counter
	lists    map[string]List
	labels   map[string]string
	notes    map[string]string
	requests []string
	reserved *time.Timer
	changed  chan struct{} // closed at the next change
	fault    func(http.ResponseWriter, *http.Request) bool
}

// New returns a sidecar. Its period of health checks is in seconds.
func New(period int64) *Sidecar {
	return &Sidecar{
		state: "Ready", period: period, created: 1_700_000_000,
		counters: map[string]Counter{"rooms": {1, 10}},
		lists:    map[string]List{"players": {[]string{"test0", "test1", "test2"}, 100}},
		labels:   map[string]string{"islocal": "true"}, notes: map[string]string{"annotation": "true"},
		changed: make(chan struct{}),
	}
}

// Update changes the GameServer as Agones does from outside.
func (s *Sidecar) Update(change func(*Sidecar)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
	s.notifyLocked()
}

// SetState sets the state, inside of Update.
func (s *Sidecar) SetState(state string) { s.state = state }

// Delete marks the GameServer as deleted, inside of Update.
func (s *Sidecar) Delete() { s.deleted = s.created + 60 }

// Declare declares counters and lists, as a fleet does, inside of Update.
func (s *Sidecar) Declare(counters map[string]Counter, lists map[string]List) {
	s.counters, s.lists = maps.Clone(counters), maps.Clone(lists)
}

// Fail sets a fault: a function that answers instead of the sidecar if it returns true. Nil is
// none.
func (s *Sidecar) Fail(fault func(http.ResponseWriter, *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = fault
}

// State returns the state of the GameServer.
func (s *Sidecar) State() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// Counter returns a counter.
func (s *Sidecar) Counter(name string) Counter {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counters[name]
}

// List returns a list.
func (s *Sidecar) List(name string) List {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists[name]
}

// Labels returns the labels and annotations.
func (s *Sidecar) Labels() (labels, annotations map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.labels), maps.Clone(s.notes)
}

// Requests returns the names of all requests, in their order, as Agones' conformance list has them.
func (s *Sidecar) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Count returns the number of requests of a name.
func (s *Sidecar) Count(name string) (n int) {
	for _, r := range s.Requests() {
		if r == name {
			n++
		}
	}
	return n
}

// notifyLocked tells the watches a change.
func (s *Sidecar) notifyLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// ServeHTTP implements http.Handler.
func (s *Sidecar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	fault := s.fault
	s.mu.Unlock()
	if fault != nil && fault(w, r) {
		return
	}
	if r.URL.Path == "/health" && r.Body == http.NoBody {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if r.Method == http.MethodGet && r.URL.Path == "/watch/gameserver" {
		s.watch(w, r)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		return
	}
	answer, failure := s.answer(r, body)
	w.Header().Set("Content-Type", "application/json")
	if failure != nil {
		w.WriteHeader(failure.status)
		answer = map[string]any{"code": failure.code, "message": failure.text, "details": []any{}}
	}
	_ = json.NewEncoder(w).Encode(answer) // The client may have disconnected.
}

// failure is a negative answer, with gRPC's code.
type failure struct {
	status, code int
	text         string
}

func errorf(format string, a ...any) *failure {
	return &failure{http.StatusInternalServerError, 2, fmt.Sprintf(format, a...)}
}

var (
	notFound = &failure{http.StatusNotFound, 5, "Not Found"}
	badJSON  = &failure{http.StatusBadRequest, 3, "invalid JSON"}
)

// answer runs a request.
func (s *Sidecar) answer(r *http.Request, body []byte) (any, *failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b struct {
		Key, Value                 string
		Seconds                    number
		Count, Capacity, CountDiff *number
		Values                     *[]string
	}
	if len(body) > 0 && json.Unmarshal(body, &b) != nil {
		return nil, badJSON
	}
	path := r.URL.Path
	switch r.Method + " " + path {
	case "POST /ready":
		return s.enterLocked("ready", "Ready", 0)
	case "POST /allocate":
		return s.enterLocked("allocate", "Allocated", 0)
	case "POST /shutdown":
		return s.enterLocked("shutdown", "Shutdown", 0)
	case "POST /reserve":
		return s.enterLocked("reserve", "Reserved", time.Duration(b.Seconds)*time.Second)
	case "POST /health":
		s.requests = append(s.requests, "health")
		return empty, nil
	case "GET /gameserver":
		s.requests = append(s.requests, "gameserver")
		return s.gameServerLocked(), nil
	case "PUT /metadata/label":
		s.requests = append(s.requests, "setlabel")
		s.labels[prefix+b.Key] = b.Value
		s.notifyLocked()
		return empty, nil
	case "PUT /metadata/annotation":
		s.requests = append(s.requests, "setannotation")
		s.notes[prefix+b.Key] = b.Value
		s.notifyLocked()
		return empty, nil
	}
	if name, ok := strings.CutPrefix(path, "/v1beta1/counters/"); ok {
		return s.counterLocked(r.Method, name, b.Count, b.Capacity, b.CountDiff)
	}
	if name, ok := strings.CutPrefix(path, "/v1beta1/lists/"); ok {
		name, verb, _ := strings.Cut(name, ":")
		return s.listLocked(r.Method+verb, name, b.Value, b.Capacity, b.Values)
	}
	return nil, notFound
}

// prefix is the beginning of the keys of labels and annotations.
const prefix = "agones.dev/sdk-"

var empty = struct{}{}

// enterLocked changes the state, for a time if that is not zero.
func (s *Sidecar) enterLocked(request, state string, d time.Duration) (any, *failure) {
	s.requests = append(s.requests, request)
	if s.reserved != nil {
		s.reserved.Stop()
		s.reserved = nil
	}
	s.state = state
	if d > 0 {
		s.reserved = time.AfterFunc(d, func() { s.Update(func(s *Sidecar) { s.state = "Ready" }) })
	}
	s.notifyLocked()
	return empty, nil
}

// gameServerLocked returns the GameServer in the form of the REST API.
func (s *Sidecar) gameServerLocked() any {
	counters, lists := map[string]any{}, map[string]any{}
	for name, c := range s.counters {
		counters[name] = map[string]any{"count": text(c.Count), "capacity": text(c.Capacity)}
	}
	for name, l := range s.lists {
		lists[name] = map[string]any{"values": slices.Clone(l.Values), "capacity": text(l.Capacity)}
	}
	return map[string]any{
		"object_meta": map[string]any{
			"name": "local", "namespace": "default", "uid": "1234", "resource_version": "v1", "generation": "1",
			"creation_timestamp": text(s.created), "deletion_timestamp": text(s.deleted),
			"labels": maps.Clone(s.labels), "annotations": maps.Clone(s.notes),
		},
		"spec": map[string]any{"health": map[string]any{
			"disabled": false, "period_seconds": s.period, "failure_threshold": 5, "initial_delay_seconds": 10,
		}},
		"status": map[string]any{
			"state": s.state, "address": "127.0.0.1", "addresses": []any{}, "players": nil,
			"ports":    []any{map[string]any{"name": "default", "port": 7777}},
			"counters": counters, "lists": lists,
		},
	}
}

// text returns an integer of 64 bits in protobuf's JSON.
func text(n int64) string { return strconv.FormatInt(n, 10) }

// number is an integer of 64 bits in protobuf's JSON.
type number int64

// UnmarshalJSON implements json.Unmarshaler.
func (n *number) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseInt(strings.Trim(string(b), `"`), 10, 64)
	*n = number(v)
	return err
}

// watch sends the GameServer, and again after each change.
func (s *Sidecar) watch(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, "watch")
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	for {
		s.mu.Lock()
		message, changed := map[string]any{"result": s.gameServerLocked()}, s.changed
		s.mu.Unlock()
		if json.NewEncoder(w).Encode(message) != nil {
			return
		}
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}
