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
	DroppedTicks uint64 `json:"dropped_ticks"` // ticks that were due and never ran
	// Budget is the tick period: the time budget of one tick.
	Budget time.Duration `json:"budget_ns"`
	// Uptime is the time from the start of the server to the start of its newest tick, or to the
	// moment of the snapshot if no tick has begun for two periods. Ticks divided by Uptime between
	// two snapshots is therefore an exact rate, which decreases during a stall.
	Uptime   time.Duration `json:"uptime_ns"`
	Tick     Histogram     `json:"tick_us"`     // durations: buckets as [lowest microsecond, count]
	Lateness Histogram     `json:"lateness_us"` // delays after the deadlines, likewise
}

// Decode reads one Snapshot from JSON. It never panics. The Snapshot returned with an error is not
// valid.
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

// Sub returns the account of the ticks between the snapshots before and s. It returns an error
// unless both are from the same run of a server and before is the earlier one.
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

// RateHz returns the number of ticks per second over Uptime, or 0 if Uptime is 0.
func (s *Snapshot) RateHz() float64 {
	if s.Uptime <= 0 {
		return 0
	}
	return float64(s.Ticks) / s.Uptime.Seconds()
}
