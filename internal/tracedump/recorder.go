package tracedump

import (
	"fmt"
	"io"
	"runtime/trace"
	"sync"
	"time"
)

const (
	// minAge is the minimum recorded time: a slow tick, and the seconds that led to it.
	minAge = 3 * time.Second
	// Covers is the time before its tick that a file has at least.
	Covers = minAge
	// maxTrace bounds the recorder's memory in bytes, and roughly the size of a file: a busy server
	// of 200 clients produces some MiB in that time.
	maxTrace = 8 << 20
)

// recorder is the flight recorder of the process; Go allows only one.
type recorder struct {
	mu    sync.Mutex
	users int
	trace *trace.FlightRecorder // runs while there are users

	writing sync.Mutex // held while trace is written: only one goroutine may do so
}

// shared is the recorder of this process. The runtime has only one, so servers in one process have
// to share it.
var shared recorder

// open adds a user, and starts the recorder for the first one.
func (r *recorder) open() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.users == 0 {
		t := trace.NewFlightRecorder(trace.FlightRecorderConfig{MinAge: minAge, MaxBytes: maxTrace})
		if err := t.Start(); err != nil {
			return fmt.Errorf("there is one flight recorder per process, and this one does not start: %w", err)
		}
		r.trace = t
	}
	r.users++
	return nil
}

// close removes a user, which must not call writeTo any more, and stops the recorder after the last
// one.
func (r *recorder) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.users--
	if r.users == 0 {
		r.trace.Stop()
	}
}

// writeTo writes the current trace. It may be called only between open and close.
func (r *recorder) writeTo(w io.Writer) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	r.mu.Lock()
	t := r.trace
	r.mu.Unlock()
	_, err := t.WriteTo(w)
	return err
}
