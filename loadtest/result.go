package loadtest

import (
	"math"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/netloop/netloop/internal/netem"
)

// Result is the outcome of a load test, which --out json writes under stable names. Times are
// milliseconds, rates are per second, and unknown values are null. All fields but Clients,
// Converged and Simulated are of the measured window alone.
type Result struct {
	Clients   Clients   `json:"clients"`
	RPC       RPC       `json:"rpc"`
	Snapshots Snapshots `json:"snapshots"`
	Server    Server    `json:"server"`
	Generator Generator `json:"generator"`
	Feel      Feel      `json:"feel"`
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
}

// Clients counts the clients of the whole run.
type Clients struct {
	Wanted    int `json:"wanted"`    // the value of --clients
	Connected int `json:"connected"` // admitted by the server
	Failed    int `json:"failed"`    // tried to connect, and were not admitted
	// of the admitted ones: they read the received state, and compare it at the end; see --verify
	Verifying int `json:"verifying"`
	// admitted, and lost the connection before the end
	Disconnected int `json:"disconnected"`
	// broken connections after which the client reconnected or tried to; see --reconnect
	Drops int `json:"drops"`
	// of them, those after which the client resumed its seat, instead of joining anew
	Resumes int `json:"resumes"`
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
}

// Generator has the load generator's own figures, which affect every other figure.
type Generator struct {
	// Lateness is the delay of each frame of each client after its deadline. Frames that a stall
	// has skipped count too, each from its own deadline.
	Lateness Spread `json:"lateness_ms"`
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

// Latency is a distribution with its tail.
type Latency struct {
	P50  *float64 `json:"p50"`
	P90  *float64 `json:"p90"`
	P99  *float64 `json:"p99"`
	P999 *float64 `json:"p999"` // 99.9 %
	Max  *float64 `json:"max"`
}

// Spread is a distribution without its tail.
type Spread struct {
	P50 *float64 `json:"p50"`
	P99 *float64 `json:"p99"`
	Max *float64 `json:"max"`
}

// ClientRate is a distribution over clients.
type ClientRate struct {
	Min *float64 `json:"min"`
	P50 *float64 `json:"p50"`
}

func latency(h *hdrhistogram.Histogram) Latency {
	return Latency{percentile(h, 50), percentile(h, 90), percentile(h, 99), percentile(h, 99.9), percentile(h, 100)}
}

func spread(h *hdrhistogram.Histogram) Spread {
	return Spread{percentile(h, 50), percentile(h, 99), percentile(h, 100)}
}

// counted is a distribution of /ticks.
type counted interface {
	Count() uint64
	Percentile(p float64) time.Duration
	Max() time.Duration
}

func spreadOf(h counted) Spread {
	if h.Count() == 0 {
		return Spread{}
	}
	return Spread{millis(h.Percentile(50)), millis(h.Percentile(99)), millis(h.Max())}
}

// clientRate is the distribution over clients of the snapshots that each received within a time.
// The median of an even number is the lower of the two in the middle.
func clientRate(received []uint64, length time.Duration) ClientRate {
	if len(received) == 0 || length <= 0 {
		return ClientRate{}
	}
	slices.Sort(received)
	rate := func(n uint64) *float64 { return hundredths(float64(n) / length.Seconds()) }
	return ClientRate{Min: rate(received[0]), P50: rate(received[(len(received)-1)/2])}
}

// hundredths rounds to two decimals.
func hundredths(x float64) *float64 {
	x = math.Round(x*100) / 100
	return &x
}

// saturated reports whether the generator was too slow in the measured window: see [Result].
func saturated(r *recorder, tick time.Duration) bool {
	late := time.Duration(r.lateness.ValueAtPercentile(99)) * time.Microsecond
	return late > tick || float64(r.sent) < 0.99*float64(r.intended)
}
