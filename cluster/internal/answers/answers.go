// Package answers makes a server run each call once: it keeps the answers of calls for as long as
// they may be repeated.
//
//	a call ─▶ Begin ─▶ New: the caller runs it, and then Finish
//	             ├──▶ Known: it runs, or has its answer
//	             ├──▶ Late: its deadline has passed, so no answer may be known any more
//	             └──▶ Full: too many calls or bytes; no answer is dropped before its deadline
//
// Times are those of the receiving server, as durations since a moment of its choice.
package answers

import (
	"sync"
	"time"
)

// sweepInterval is the minimum time between two sweeps over all answers.
const sweepInterval = 100 * time.Millisecond

// Answer is the answer of a call.
type Answer struct {
	Body []byte
	Err  error
}

// Log has the calls of one server. Any goroutine may use it.
type Log struct {
	maxCalls, maxBytes int

	mu    sync.Mutex
	calls map[string]*Entry
	bytes int
	swept time.Duration
}

// Entry is a call that has begun.
type Entry struct {
	Done   chan struct{} // closed by Finish
	Answer Answer        // after Done
	until  time.Duration
}

// Outcome is the result of Begin.
type Outcome int

// The outcomes of Begin.
const (
	New Outcome = iota
	Known
	Late
	Full
)

// NewLog returns an empty log of at most so many calls, and bytes of answers.
func NewLog(calls, bytes int) *Log {
	return &Log{maxCalls: calls, maxBytes: bytes, calls: map[string]*Entry{}}
}

// Begin registers a call that may be repeated until a time. The entry is nil for Late and Full.
func (l *Log) Begin(id string, now, until time.Duration) (*Entry, Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now >= until {
		return nil, Late
	}
	if now-l.swept >= sweepInterval {
		l.sweepLocked(now)
	}
	if e := l.calls[id]; e != nil {
		e.until = max(e.until, until)
		return e, Known
	}
	if len(l.calls) >= l.maxCalls || l.bytes >= l.maxBytes {
		return nil, Full
	}
	e := &Entry{Done: make(chan struct{}), until: until}
	l.calls[id] = e
	return e, New
}

// Finish sets the answer of a new call.
func (l *Log) Finish(e *Entry, a Answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.Answer = a
	l.bytes += len(a.Body)
	close(e.Done)
}

// sweepLocked drops the answers that no repetition can still ask for.
func (l *Log) sweepLocked(now time.Duration) {
	l.swept = now
	for id, e := range l.calls {
		select {
		case <-e.Done:
			if now >= e.until {
				l.bytes -= len(e.Answer.Body)
				delete(l.calls, id)
			}
		default: // A running call stays, also after its deadline.
		}
	}
}
