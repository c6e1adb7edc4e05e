package loadtest

import (
	"github.com/netloop/netloop/internal/netem"
)

// SchemaVersion is the version of the JSON of a [Result]. It changes when a field is removed or
// gets another meaning, and not when one is added.
const SchemaVersion = 1

// Result is the outcome of a load test, which --out json writes under stable names:
// result.schema.json is its JSON Schema. Times are milliseconds, rates are per second, and unknown
// values are null. All fields but Run, Verdict, Clients, Joins, Series, Converged and Simulated
// are of the measured window alone.
type Result struct {
	SchemaVersion int       `json:"schema_version"`
	Run           Run       `json:"run"`
	Verdict       Verdict   `json:"verdict"`
	Clients       Clients   `json:"clients"`
	Joins         Joins     `json:"joins"`
	RPC           RPC       `json:"rpc"`
	Snapshots     Snapshots `json:"snapshots"`
	Network       Network   `json:"network"`
	Server        Server    `json:"server"`
	Generator     Generator `json:"generator"`
	Feel          Feel      `json:"feel"`
	// Counts are the bots' counts of [Meter.Count], by name. It is left out if the bots count no
	// event.
	Counts map[string]uint64 `json:"counts,omitempty"`
	// Simulated has the effects of the network of --simulate: null without it.
	Simulated *Simulated `json:"simulated"`
	// Converged reports that at the end every client that reads its state compared a digest of it
	// with the server's, and found it equal: all clients, unless --verify asks for fewer.
	Converged bool `json:"converged"`
	// Saturated reports that the generator itself was too slow, so that the figures are invalid:
	// the 99th percentile of Generator.Lateness exceeds one tick, or fewer than 99 % of the
	// intended calls were sent.
	Saturated bool `json:"saturated"`
	// Worst are the ten slowest ticks of the default room, with the slowest system of each. Ticks
	// are missing if 50 ticks of the hour before the window were slower.
	Worst []WorstTick `json:"worst_ticks,omitempty"`
	// Growth has the slopes of a soak.
	Growth []Trend `json:"growth,omitempty"`
	// Series has the figures of each second of the whole run.
	Series Series `json:"series"`
	// Histograms are the exact counts behind the percentiles, by the name of the distribution, such
	// as snapshot.age. A distribution without a record is left out.
	Histograms map[string]Histogram `json:"histograms"`
}

// Clients counts the clients of the whole run.
type Clients struct {
	Wanted    int `json:"wanted"`    // the value of --clients
	Connected int `json:"connected"` // admitted by the server
	Failed    int `json:"failed"`    // tried to connect, and were not admitted
	// of the admitted ones: they read the received state, and compare it at the end; see --verify
	Verifying int `json:"verifying"`
	// admitted, and lost the connection before the end; not those that the run itself ended
	Disconnected int `json:"disconnected"`
	// broken connections after which the client reconnected or tried to; see --reconnect
	Drops int `json:"drops"`
	// of them, those after which the client resumed its seat, instead of joining anew
	Resumes int `json:"resumes"`
	// those of --slow-readers, which count neither as disconnected nor in Drops, and their
	// connections that broke or ended
	SlowReaders int `json:"slow_readers"`
	SlowDrops   int `json:"slow_reader_drops"`
}

// Joins has the admissions of the whole run.
type Joins struct {
	Admitted uint64   `json:"admitted"`
	Rate     *float64 `json:"per_second"` // from the first start to the last end
	Latency  Spread   `json:"latency_ms"` // of an admission, from the dial on
	// Refused counts the attempts that failed, by reason.
	Refused map[string]uint64 `json:"refused,omitempty"`
	// Ended counts the lost connections, by reason.
	Ended map[string]uint64 `json:"ended,omitempty"`
}

// Network has the figures of the connections. Those that the server counts are null without
// --admin.
type Network struct {
	// RTT is the median over clients of the smallest recent round trip, at the end.
	RTT *float64 `json:"rtt_ms"`
	// Lost are packets of state that did not arrive, HeldBack due snapshots that the server did
	// not send because the link had no room. Only clients that read their state count them.
	Lost     uint64 `json:"packets_lost"`
	HeldBack uint64 `json:"snapshots_held_back"`
	// Chokes counts datagrams that waited 1 ms or more for a client's congestion window.
	Chokes *float64 `json:"chokes"`
	// Per client and second: datagrams and stream data, to the clients (down) and from them (up).
	BytesDown   *float64 `json:"bytes_down"`
	BytesUp     *float64 `json:"bytes_up"`
	PacketsDown *float64 `json:"packets_down"`
	PacketsUp   *float64 `json:"packets_up"`
}

// RPC has the figures of the calls that [Calls] made, and of those measured with [Meter.Begin]. A
// call counts if its scheduled time, or its Begin, is in the measured window.
type RPC struct {
	Sent     uint64 `json:"sent"`     // questions
	Answered uint64 `json:"answered"` // of them, neither refused nor left unanswered for 10 s
	// RTT runs from the scheduled time of a call until the frame in which its answer is delivered.
	RTT Latency `json:"rtt_ms"`
}

// Snapshots has the figures of the complete snapshots.
type Snapshots struct {
	Received uint64 `json:"received"` // by all clients
	// Rate is over clients: each one's snapshots divided by the length of the window.
	Rate ClientRate `json:"rate_hz"`
	// Interval pools the times between two snapshots of all clients. An interval ends when the
	// packet that completes a snapshot arrives, before any frame reads it.
	Interval Spread `json:"interval_ms"`
	// Age is sampled at each frame of each client: the server's time as the client estimates it,
	// minus the deadline of the newest tick that it has applied.
	Age Spread `json:"age_ms"`
	// Bytes are of the snapshots' packets, without the transport's overhead, per client and second.
	Bytes *float64 `json:"bytes_per_client_per_second"`
}

// Server has the figures that the server itself measures, from /ticks; they are null without
// --admin.
type Server struct {
	Tick         Spread   `json:"tick_ms"`       // durations of ticks
	Lateness     Spread   `json:"lateness_ms"`   // from their deadlines to their starts
	Overruns     *uint64  `json:"overruns"`      // ticks that took longer than their period
	DroppedTicks *uint64  `json:"dropped_ticks"` // real time that no tick represents
	TickRate     *float64 `json:"tick_rate_hz"`  // ticks that ran, per second
	Budget       *float64 `json:"budget_ms"`     // of a tick: its period
	// FlushLag is the 99th percentile of the time from a tick's flush until the transport has
	// accepted the last datagram of a client: the upper bound of a bucket of the server's metrics.
	FlushLag *float64 `json:"flush_lag_p99_ms"`
	Process  Process  `json:"process"`
}

// WorstTick is a slow tick of the server.
type WorstTick struct {
	Tick     uint64  `json:"tick"`
	Duration float64 `json:"duration_ms"`
	Lateness float64 `json:"lateness_ms"`
	Cause    string  `json:"cause"` // why it was late or too long; empty if it was neither
	System   string  `json:"system"`
	Stage    string  `json:"stage"`
	Cost     float64 `json:"system_ms"`
}

// Process has the resources of a process. CPU and GC are of the measured window, the others of its
// end.
type Process struct {
	CPU        *float64 `json:"cpu_cores"` // used on average: 1 is one core all the time
	Cores      *float64 `json:"cores"`     // that Go may use: GOMAXPROCS
	Memory     *float64 `json:"memory_bytes"`
	Goroutines *float64 `json:"goroutines"`
	GCCycles   *float64 `json:"gc_cycles"`
	GCCPU      *float64 `json:"gc_cpu_cores"`
}

// Generator has the load generator's own figures, which affect every other figure.
type Generator struct {
	// Lateness is the delay of each frame of each client after its deadline. Frames that a stall
	// has skipped count too, each from its own deadline.
	Lateness Spread  `json:"lateness_ms"`
	Process  Process `json:"process"`
}

// Simulated counts the datagrams of the whole run in each direction of the network of --simulate.
// The names are passed, lost, queue (a router's buffer was full), hole (during a simulated outage),
// unbound (to an address from before a rebind), overflow (of the simulation itself), and among the
// passed ones duplicated, reordered and corrupted.
type Simulated struct {
	Network string            `json:"network"`
	Up      map[string]uint64 `json:"up"`   // from the clients to the server
	Down    map[string]uint64 `json:"down"` // from the server to the clients
	Rebinds uint64            `json:"rebinds"`
}

func simulated(network netem.Spec, st *netem.Stats) *Simulated {
	if st == nil {
		return nil
	}
	s := &Simulated{Network: network.String(), Up: map[string]uint64{}, Down: map[string]uint64{}, Rebinds: st.Rebinds.Load()}
	st.Each(func(d netem.Direction, f netem.Fate, n uint64) {
		if d == netem.Up {
			s.Up[f.String()] = n
		} else {
			s.Down[f.String()] = n
		}
	})
	return s
}
