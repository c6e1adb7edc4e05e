package inspect

import (
	"time"

	"github.com/netloop/netloop/internal/metrics"
	"github.com/netloop/netloop/internal/overload"
)

// Overview is the answer of /api/overview.
type Overview struct {
	Game     string           `json:"game"`           // name of the schema
	Version  string           `json:"version"`        // of netloop
	Instance string           `json:"instance"`       // differs after each start
	Room     string           `json:"room"`           // the default room
	Time     time.Time        `json:"time"`           // of the answer
	Uptime   float64          `json:"uptime_seconds"` // since the start, in seconds
	Budget   time.Duration    `json:"budget_ns"`      // the tick period of the default room
	Rate     float64          `json:"rate_hz"`        // measured, of all rooms together
	Windows  []metrics.Window `json:"windows"`        // the last 10 s, 1 min and 5 min
	Overload string           `json:"overload"`       // the level of the most overloaded room
	Ladder   Ladder           `json:"ladder"`         // of that room
	Ready    string           `json:"ready"`          // empty, or why no client can join
	Note     string           `json:"note"`           // of /readyz and /healthz
	Rooms    int              `json:"rooms"`          // number of rooms
	Write    bool             `json:"write"`          // the request's token has the role write
	Ring     time.Duration    `json:"ring_ns"`        // of past ticks that are kept; 0: none
	Cluster  string           `json:"cluster"`        // id in the cluster; empty without one
	Memory   Memory           `json:"memory"`         // of the process
}

// Ladder tells why a room is at its level of overload. Times are in nanoseconds, of running ticks.
type Ladder struct {
	Room     string             `json:"room"`     // the most overloaded one
	Level    string             `json:"level"`    // of overload
	For      time.Duration      `json:"for_ns"`   // since the last change of the level
	Ago      time.Duration      `json:"ago_ns"`   // since the last window that raised the level
	Next     time.Duration      `json:"next_ns"`  // until the next step down; 0: none
	Measures []overload.Measure `json:"measures"` // that raise the level
	Text     string             `json:"text"`     // all of it in words
}

// NewLadder describes the facts of a room.
func NewLadder(room string, f overload.Facts) Ladder {
	return Ladder{Room: room, Level: f.Level.String(), For: f.For, Ago: f.Ago, Next: f.Next, Measures: f.Measures(), Text: f.String()}
}

// Memory holds the memory and CPU figures of the Go runtime.
type Memory struct {
	Heap       uint64  `json:"heap_bytes"`     // live and unswept objects
	Total      uint64  `json:"total_bytes"`    // mapped by the runtime, and not released
	Goroutines int     `json:"goroutines"`     // of the process
	Cycles     uint64  `json:"gc_cycles"`      // of the garbage collector
	GC         float64 `json:"gc_cpu_seconds"` // CPU time of the garbage collector
	CPU        float64 `json:"cpu_seconds"`    // time available to the process on all cores
}

// Client is a client in the answer of /api/clients. Times are in nanoseconds.
type Client struct {
	Client    uint64        `json:"client"`    // id of the client
	Subject   string        `json:"subject"`   // the player, as authenticated; empty without
	Addr      string        `json:"addr"`      // IP address and port
	Transport string        `json:"transport"` // the carrier, such as quic
	State     string        `json:"state"`     // connected, dropped or leaving
	Age       time.Duration `json:"age_ns"`    // since it joined the room
	Silent    time.Duration `json:"silent_ns"` // game time since its last data
	RTT       time.Duration `json:"rtt_ns"`    // smoothed round trip
	InFlight  int           `json:"in_flight"` // snapshots sent and not acknowledged
	Window    int           `json:"window"`    // limit of in_flight
	Waits     string        `json:"waits"`     // slot_busy or window_closed; empty if none
	// Loss is the lost share of the last 50 or more packets with snapshots, from 0 to 1; null
	// before the first 50. AckAge is the time since the newest acknowledgement; null before the
	// first one.
	Loss   *float64       `json:"loss"`
	AckAge *time.Duration `json:"ack_age_ns"`

	// Received and Sent are the bytes of all datagrams and of the stream, of the connection in this
	// room.
	Received uint64 `json:"received_bytes"`
	Sent     uint64 `json:"sent_bytes"`
	// The messages that wait to be sent to the client. QueuedBytes is the bytes of reliable
	// messages and of state records on the stream. QueuedMessages is the number of unreliable
	// messages.
	QueuedBytes    int `json:"queued_bytes"`
	QueuedMessages int `json:"queued_messages"`
	Waiting        int `json:"waiting"` // messages of it that wait for their stage

	Snapshots    uint64 `json:"snapshots"`     // snapshot packets sent to it
	Bytes        uint64 `json:"bytes"`         // of these packets
	SlotBusy     uint64 `json:"slot_busy"`     // snapshots deferred by an unsent one
	WindowClosed uint64 `json:"window_closed"` // snapshots deferred by a full window

	Inputs       uint64        `json:"inputs"`          // inputs that ran in their step
	InputsMissed uint64        `json:"inputs_missed"`   // fixed steps without its input
	InputsLate   uint64        `json:"inputs_late"`     // inputs that came after their step
	InputMargin  time.Duration `json:"input_margin_ns"` // 95 % of inputs arrive so early
	Rewind       time.Duration `json:"rewind_ns"`       // age of its newest view
	ViewsClamped uint64        `json:"views_clamped"`   // views moved into the allowed range
	// Mispredicted is the number of mispredictions that the client has reported.
	Mispredicted uint64 `json:"mispredicted"`

	Simulated string `json:"simulated"` // the emulated network around its connection; empty without
}

// Clients is the answer of /api/clients. More is the number of clients that are not listed.
type Clients struct {
	Tick    uint64   `json:"tick"`    // after which the answer was made
	Clients []Client `json:"clients"` // by id
	More    int      `json:"more"`
}
