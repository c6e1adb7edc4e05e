package inspect

import (
	"time"

	"github.com/netloop/netloop/internal/metrics"
)

// Overview is the answer of /api/overview.
type Overview struct {
	Game     string           `json:"game"` // name of the schema
	Version  string           `json:"version"`
	Instance string           `json:"instance"` // differs after each start
	Room     string           `json:"room"`     // the default room
	Time     time.Time        `json:"time"`
	Uptime   float64          `json:"uptime_seconds"`
	Budget   time.Duration    `json:"budget_ns"` // the tick period of the default room
	Rate     float64          `json:"rate_hz"`   // measured, of all rooms together
	Windows  []metrics.Window `json:"windows"`
	Overload string           `json:"overload"` // of the most overloaded room
	Ready    string           `json:"ready"`    // the reason why no client can join; else empty
	Note     string           `json:"note"`     // notes of /readyz and /healthz
	Rooms    int              `json:"rooms"`
	Write    bool             `json:"write"` // the request's token has the role write
	Memory   Memory           `json:"memory"`
}

// Memory holds the memory and CPU figures of the Go runtime.
type Memory struct {
	Heap       uint64  `json:"heap_bytes"`  // live and unswept objects
	Total      uint64  `json:"total_bytes"` // mapped by the runtime, and not released
	Goroutines int     `json:"goroutines"`
	Cycles     uint64  `json:"gc_cycles"`
	GC         float64 `json:"gc_cpu_seconds"`
	CPU        float64 `json:"cpu_seconds"` // time available to the process on all cores
}

// Client is a client in the answer of /api/clients. Times are in nanoseconds.
type Client struct {
	Client    uint64        `json:"client"`
	Subject   string        `json:"subject"`
	Addr      string        `json:"addr"`
	Transport string        `json:"transport"`
	State     string        `json:"state"` // connected, dropped or leaving
	Age       time.Duration `json:"age_ns"`
	Silent    time.Duration `json:"silent_ns"`
	RTT       time.Duration `json:"rtt_ns"`
	InFlight  int           `json:"in_flight"`
	Window    int           `json:"window"`
	Waits     string        `json:"waits"` // slot_busy or window_closed; empty if none

	Snapshots    uint64 `json:"snapshots"`
	Bytes        uint64 `json:"bytes"` // of these packets
	SlotBusy     uint64 `json:"slot_busy"`
	WindowClosed uint64 `json:"window_closed"`

	Inputs       uint64        `json:"inputs"`
	InputsMissed uint64        `json:"inputs_missed"`
	InputsLate   uint64        `json:"inputs_late"`
	InputMargin  time.Duration `json:"input_margin_ns"`
	Rewind       time.Duration `json:"rewind_ns"`
	ViewsClamped uint64        `json:"views_clamped"`
}

// Clients is the answer of /api/clients. More is the number of clients that are not listed.
type Clients struct {
	Tick    uint64   `json:"tick"`
	Clients []Client `json:"clients"`
	More    int      `json:"more"`
}
