package tracedump

import (
	"fmt"
	"io"
	"runtime/trace"
	"sync"
	"time"
)

const (
	// minAge is what the recorder remembers at least: a slow tick, and how it came to it.
	minAge = 3 * time.Second
	// maxTrace bounds its memory, and about so the size of a file: a busy server of 200
	// clients makes some MiB in that time.
	maxTrace = 8 << 20
)

// recorder is the flight recorder of the process, which Go allows one of.
type recorder struct {
	mu    sync.Mutex
	users int
	trace *trace.FlightRecorder // runs while there are users

	writing sync.Mutex // Go lets one goroutine read it at a time
}

// shared is the one of this process. That there is one is the runtime's doing, so it is no
// state of ours that two servers would fight about.
var shared recorder

// open starts the recorder for its first user.
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

// close stops it after its last user, who no longer reads it.
func (r *recorder) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.users--
	if r.users == 0 {
		r.trace.Stop()
		r.trace = nil
	}
}

// writeTo writes what is remembered at this moment. Only a user calls it.
func (r *recorder) writeTo(w io.Writer) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	r.mu.Lock()
	t := r.trace
	r.mu.Unlock()
	_, err := t.WriteTo(w)
	return err
}
