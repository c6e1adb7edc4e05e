package main

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// report counts the noticed changes. Any goroutine may use it.
type report struct {
	out    io.Writer // unnoticed changes, and the figures
	notes  io.Writer // the progress of the run
	chosen int
	began  time.Time

	mu            sync.Mutex
	tried, missed int
}

func (r *report) add(c change, noticed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tried++; !noticed {
		r.missed++
		fmt.Fprintln(r.out, "unnoticed:", c)
	}
	if r.tried%25 == 0 {
		fmt.Fprintf(r.notes, "%d tried, %d unnoticed, %v\n", r.tried, r.missed, time.Since(r.began).Round(time.Second))
	}
}

// end prints the figures, and returns an error if they are too low or incomplete.
func (r *report) end(interrupted bool) (err error) {
	if interrupted {
		err = fmt.Errorf("interrupted when %d of the %d chosen changes had been tried", r.tried, r.chosen)
	}
	if r.tried == 0 {
		return errors.Join(err, errors.New("no change could be tried"))
	}
	share := 1 - float64(r.missed)/float64(r.tried)
	fmt.Fprintf(r.out, "%d changes tried in %v: %d noticed, %d not (%.1f %%)\n",
		r.tried, time.Since(r.began).Round(time.Second), r.tried-r.missed, r.missed, 100*share)
	if share < least {
		err = errors.Join(err, fmt.Errorf("at least %.0f %% should be noticed", 100*least))
	}
	return err
}
