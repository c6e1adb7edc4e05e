package loadtest

import (
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/netloop/netloop/client"
)

// Feel has the effects that players notice, over all clients. The game's own figures (Reaction,
// Correction, Hits) are reported by the bot to its [Meter], and null or 0 without such reports.
type Feel struct {
	// Reaction is the number of frames from an input until the drawn own object follows it: 0 is
	// the same frame.
	Reaction Spread `json:"reaction_frames"`
	// Mispredicted is the rate of mispredictions of a client's own objects, per client and minute.
	// MispredictedLate is the rate of only those after the server had missed inputs, or while
	// inputs arrived too late. All other mispredictions have other causes, such as other players.
	Mispredicted     *float64 `json:"mispredicted_per_minute"`
	MispredictedLate *float64 `json:"mispredicted_late_per_minute"`
	Correction       Spread   `json:"correction"` // their size, in the game's units
	// Delay is the time by which the drawn interpolated objects are behind the server's time, at
	// each frame. Starved is the share of frames for which the next snapshot had not arrived.
	Delay   Spread   `json:"view_delay_ms"`
	Starved *float64 `json:"starved"`
	// Hits counts the hits that shooting bots saw, Confirmed those hits that the server confirmed.
	Hits      uint64 `json:"hits"`
	Confirmed uint64 `json:"hits_confirmed"`
	// Inputs counts the inputs that the clients made, InputsMissed the fixed steps that the server
	// ran without the client's input. InputBytes is the mean size of the inputs in a datagram.
	Inputs       uint64   `json:"inputs"`
	InputsMissed uint64   `json:"inputs_missed"`
	InputBytes   *float64 `json:"input_bytes_per_datagram"`
	// ClockError is the difference between a client's estimate of the server's time and the true
	// time, at each frame. It is null unless a test provides the true time: a load client does not
	// know it.
	ClockError Spread `json:"clock_error_ms"`
}

// feelRecorder are the records from which Feel is computed.
type feelRecorder struct {
	reaction   *hdrhistogram.Histogram // frames
	correction *hdrhistogram.Histogram // thousandths of the game's unit
	delay      *hdrhistogram.Histogram
	clock      *hdrhistogram.Histogram

	drawn, starved                 uint64 // frames
	mispredicted, late             uint64
	hits, confirmed                uint64
	lost, held                     uint64 // packets, snapshots
	inputs, missed, bytes, packets uint64
}

func newFeelRecorder() *feelRecorder {
	return &feelRecorder{reaction: newHistogram(), correction: newHistogram(), delay: newHistogram(), clock: newHistogram()}
}

func (f *feelRecorder) merge(o *feelRecorder) {
	f.reaction.Merge(o.reaction)
	f.correction.Merge(o.correction)
	f.delay.Merge(o.delay)
	f.clock.Merge(o.clock)
	f.drawn += o.drawn
	f.starved += o.starved
	f.mispredicted += o.mispredicted
	f.late += o.late
	f.hits += o.hits
	f.confirmed += o.confirmed
	f.lost += o.lost
	f.held += o.held
	f.inputs += o.inputs
	f.missed += o.missed
	f.bytes += o.bytes
	f.packets += o.packets
}

// frame records the change of a client's statistics from the frame before to this one.
func (f *feelRecorder) frame(now, was *client.Stats) {
	if now.Drawn > was.Drawn {
		record(f.delay, now.ViewDelay)
	}
	f.drawn += now.Drawn - was.Drawn
	f.starved += now.Starved - was.Starved
	f.mispredicted += now.Prediction.Mispredicted - was.Prediction.Mispredicted
	f.late += now.Prediction.MispredictedLate - was.Prediction.MispredictedLate
	f.inputs += now.Inputs - was.Inputs
	f.bytes += now.InputBytes - was.InputBytes
	f.packets += now.InputPackets - was.InputPackets
	if now.Lost >= was.Lost && now.HeldBack >= was.HeldBack {
		f.lost += now.Lost - was.Lost
		f.held += now.HeldBack - was.HeldBack
	}
	if now.InputsMissed > was.InputsMissed { // A client that has joined anew counts from 0.
		f.missed += now.InputsMissed - was.InputsMissed
	}
}

// result returns the figures for a number of clients in a measured window of this length.
func (f *feelRecorder) result(clients int, length time.Duration) Feel {
	minutes := float64(clients) * length.Minutes()
	return Feel{
		Reaction: scaled(f.reaction, 1), Correction: scaled(f.correction, 1000),
		Mispredicted: ratio(float64(f.mispredicted), minutes), MispredictedLate: ratio(float64(f.late), minutes),
		Delay: spread(f.delay), Starved: ratio(float64(f.starved), float64(f.drawn)),
		Hits: f.hits, Confirmed: f.confirmed, Inputs: f.inputs, InputsMissed: f.missed,
		InputBytes: ratio(float64(f.bytes), float64(f.packets)), ClockError: spread(f.clock),
	}
}

// scaled returns the spread of h in whole units: h counts fractions of 1/parts of a unit.
func scaled(h *hdrhistogram.Histogram, parts float64) Spread {
	at := func(p float64) *float64 {
		if h.TotalCount() == 0 {
			return nil
		}
		return new(float64(h.ValueAtPercentile(p)) / parts)
	}
	return Spread{at(50), at(99), at(99.9), at(100)}
}

// ratio returns a ÷ b, rounded to five decimals, and nil if b is 0.
func ratio(a, b float64) *float64 {
	if b == 0 {
		return nil
	}
	return new(math.Round(a/b*1e5) / 1e5)
}

// Reacted records the number of frames from an input until the bot's own object, as it is drawn,
// followed it: 0 is the same frame. See [Feel].
func (m *Meter) Reacted(frames int) { m.reacted(m.now(), frames) }

// Corrected records the size of a misprediction of the bot's own object, in the game's unit.
func (m *Meter) Corrected(size float64) { m.corrected(m.now(), size) }

// Hit records a hit that the bot saw as it shot, once it is known whether the server has confirmed
// it.
func (m *Meter) Hit(confirmed bool) { m.hit(m.now(), confirmed) }

func (m *Meter) reacted(at time.Duration, frames int) {
	if m.measures(at) {
		_ = m.worker.rec.feel.reaction.RecordValue(min(int64(frames), highestMicros))
	}
}

func (m *Meter) corrected(at time.Duration, size float64) {
	if m.measures(at) {
		_ = m.worker.rec.feel.correction.RecordValue(int64(min(size*1000, highestMicros)))
	}
}

func (m *Meter) hit(at time.Duration, confirmed bool) {
	if !m.measures(at) {
		return
	}
	m.worker.rec.feel.hits++
	if confirmed {
		m.worker.rec.feel.confirmed++
	}
}
