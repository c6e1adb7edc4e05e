package ticks

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// MaxEncoded bounds a client's read of /ticks. The largest possible answer, with every bucket of
// both histograms in use and twenty digits each, is smaller.
const MaxEncoded = 4 << 20

// Snapshot is the account of a server's ticks since it started. It is a plain value.
type Snapshot struct {
	Ticks        uint64 `json:"ticks"`         // ticks that ran
	Overruns     uint64 `json:"overruns"`      // ticks that took longer than the budget
	DroppedTicks uint64 `json:"dropped_ticks"` // real time that no tick represents
	// Budget is the tick period: the time budget of one tick.
	Budget time.Duration `json:"budget_ns"`
	// Uptime runs from the start of the server to the start of its newest tick, or to
	// the moment of the snapshot once no tick has begun for two periods. Ticks over
	// Uptime between two snapshots is therefore an exact rate, and a stall shows.
	Uptime time.Duration `json:"uptime_ns"`
	// Tick is the durations of ticks, Lateness their delays after their deadlines.
	Tick     Histogram `json:"tick_us"`
	Lateness Histogram `json:"lateness_us"`
}

// Decode reads one Snapshot from JSON. It never panics, and after an error no part of the input may
// be used.
func Decode(b []byte) (Snapshot, error) {
	if len(b) > MaxEncoded {
		return Snapshot{}, fmt.Errorf("ticks: %d bytes, at most %d", len(b), MaxEncoded)
	}
	var s Snapshot
	if err := json.Unmarshal(b, &s); err != nil {
		return Snapshot{}, fmt.Errorf("ticks: decode: %w", err)
	}
	if s.Budget < 0 || s.Uptime < 0 {
		return Snapshot{}, errors.New("ticks: decode: negative budget or uptime")
	}
	return s, nil
}

// Sub returns the window between before and s: the ticks after before was taken. It is an error if
// they are not of the same run of a server, in that order.
func (s *Snapshot) Sub(before *Snapshot) (Snapshot, error) {
	if s.Ticks < before.Ticks || s.Overruns < before.Overruns ||
		s.DroppedTicks < before.DroppedTicks || s.Uptime < before.Uptime {
		return Snapshot{}, errRestarted
	}
	tick, err := s.Tick.sub(&before.Tick)
	if err != nil {
		return Snapshot{}, err
	}
	lateness, err := s.Lateness.sub(&before.Lateness)
	if err != nil {
		return Snapshot{}, err
	}
	return Snapshot{
		Ticks:        s.Ticks - before.Ticks,
		Overruns:     s.Overruns - before.Overruns,
		DroppedTicks: s.DroppedTicks - before.DroppedTicks,
		Budget:       s.Budget,
		Uptime:       s.Uptime - before.Uptime,
		Tick:         tick,
		Lateness:     lateness,
	}, nil
}

// RateHz is the ticks per second over the snapshot's time, 0 when there was none.
func (s *Snapshot) RateHz() float64 {
	if s.Uptime <= 0 {
		return 0
	}
	return float64(s.Ticks) / s.Uptime.Seconds()
}
