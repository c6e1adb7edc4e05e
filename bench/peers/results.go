package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/netloop/netloop/bench/measure"
)

// results is the content of the results' file. It grows cell by cell, so that an interrupted run is
// continued by the next one.
type results struct {
	Machine  string             `json:"machine"`
	Versions map[string]string  `json:"versions"` // by peer
	Skipped  map[string]string  `json:"skipped"`  // why a peer is missing, by peer
	Cells    map[string]outcome `json:"cells"`    // by cell.key
}

func loadResults(file string) (*results, error) {
	r := &results{}
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, r)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: remove it to measure everything again", file, err)
	}
	if r.Cells == nil {
		r.Versions, r.Skipped, r.Cells = map[string]string{}, map[string]string{}, map[string]outcome{}
	}
	return r, nil
}

func (r *results) save(file string) error {
	text, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	if err := os.WriteFile(file+".new", append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// has reports whether a cell has valid figures of a window that is long enough.
func (r *results) has(c cell, window time.Duration) bool {
	o, ok := r.Cells[c.key()]
	return ok && o.Note == "" && o.Window >= 0.9*window.Seconds()
}

// date returns the days of the valid cells.
func (r *results) date() string {
	var first, last time.Time
	for _, o := range r.Cells {
		if first.IsZero() || o.At.Before(first) {
			first = o.At
		}
		if o.At.After(last) {
			last = o.At
		}
	}
	const day = time.DateOnly
	if first.Format(day) == last.Format(day) {
		return last.Format(day)
	}
	return first.Format(day) + " to " + last.Format(day)
}

// machine describes this machine.
func machine() string {
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return fmt.Sprintf("%d cores of %s, Linux %s, %s", runtime.NumCPU(), measure.Processor(), strings.TrimSpace(string(kernel)), runtime.Version())
}
