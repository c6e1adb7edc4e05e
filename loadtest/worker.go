package loadtest

import (
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/bridge"
)

// player is one client of the load test. Its worker's goroutine owns it.
type player struct {
	rate   netloop.Rate  // of its room
	period time.Duration // of its frames
	client *client.Client
	meter  Meter

	deadline time.Duration // of the next frame, on the run's clock
	last     time.Duration // when the last frame began
	arrived  time.Duration // the newest whole snapshot, on the run's clock
	received uint64        // snapshots in the measured window
	stats    client.Stats  // after the last frame
	gone     bool          // the client ended
	away     bool          // its connection broke, and it reconnects
	resumes  uint64        // that have been counted
	verify   verification
	order    int  // among those that verify
	settled  bool // counted in run.settled: see settle

	again    bool          // it has joined in place of another: the run has disturbed it
	started  time.Duration // when its frames began
	breaking atomic.Bool   // its connection shall break
	leaving  atomic.Bool   // it shall leave, and close left
	left     chan struct{} // closed when it has left, or was lost
	departed bool          // it has left because it should; written before left is closed
}

// present returns the part of the measured window in which the client has played.
func (p *player) present(w *window) time.Duration {
	return max(0, time.Duration(w.to.Load())-max(p.started, time.Duration(w.from.Load())))
}

// throughout returns the number of snapshots that the client would have received in a window of
// this length, from those in the part of it that the client has played. It reports false if that
// part is less than a tenth, or if the client plays in place of another.
func (p *player) throughout(played, length time.Duration) (snapshots uint64, ok bool) {
	if p.again || played <= 0 || played < length/10 {
		return 0, false
	}
	return uint64(math.Round(float64(p.received) * float64(length) / float64(played))), true
}

// verification is the state of a client's comparison with the server.
type verification uint8

const (
	notAsked verification = iota
	asked
	equal
	failed
	spared // the client has no state to compare
)

// worker runs the frames of some of the clients.
type worker struct {
	run     *run
	add     chan *player // from the dial goroutines; unbuffered
	players []*player
	// departed is set if some of players have left because they should.
	departed bool
	rec      *recorder
	timer    *time.Timer
	sleep    func(until time.Duration) // nil unless frames are exact: see waitExactly

	// The sampler puts an empty record into spare, and takes the filled one from full a moment
	// later: no lock and no garbage on this side.
	live        *live
	spare, full atomic.Pointer[live]

	// played is the time in the measured window of the clients that have left.
	played   time.Duration
	lost     tally // why connections ended
	notEqual tally // why clients could not be verified
}

func newWorker(r *run) *worker {
	w := &worker{run: r, add: make(chan *player), rec: newRecorder(), live: newLive(), lost: tally{}, notEqual: tally{}}
	if r.opts.exact {
		w.sleep = r.sleep
	}
	return w
}

// idle is the longest wait of a worker: a worker without clients, too, then notices the end of the
// run.
const idle = 50 * time.Millisecond

// loop runs until the run's last phase.
func (w *worker) loop() {
	w.timer = time.NewTimer(idle)
	defer w.timer.Stop()
	for w.run.phase() != goodbye {
		w.handOver()
		w.wait(w.frames())
	}
	for _, p := range w.players {
		p.meter.ending = true
		_ = p.client.Close() // It ends either way.
	}
}

// frames runs the due frames, and returns the time of the next one.
func (w *worker) frames() time.Duration {
	now := w.run.now()
	next := now + idle
	for _, p := range w.players {
		if p.gone {
			continue
		}
		if p.deadline <= now {
			w.frame(p, now)
			now = w.run.now()
		}
		next = min(next, p.deadline)
	}
	w.forget()
	return next
}

// forget removes the clients that have left because they should.
func (w *worker) forget() {
	if w.departed {
		w.players, w.departed = slices.DeleteFunc(w.players, func(p *player) bool { return p.departed }), false
	}
}

// wait waits until at or for a new client. A worker that is behind does not wait, but still takes a
// new client.
func (w *worker) wait(at time.Duration) {
	if w.sleep != nil && len(w.players) > 0 {
		w.waitExactly(at)
		return
	}
	w.timer.Reset(max(0, at-w.run.now()))
	select {
	case p := <-w.add:
		w.start(p)
	case <-w.timer.C:
	}
}

// waitExactly waits until at as a server waits for its ticks; a timer of the runtime would be late
// by up to a millisecond. A client that is added meanwhile begins after the next frame.
func (w *worker) waitExactly(at time.Duration) {
	select {
	case p := <-w.add:
		w.start(p)
	default:
		w.sleep(at)
	}
}

// start begins the frames of a client, at its own phase of the frame period.
func (w *worker) start(p *player) {
	r, m := w.run, &p.meter
	now := r.now()
	m.client, m.worker, m.offset = p.client, w, p.client.Now()-now
	p.follow(r, p.client.TickRate())
	period := p.period
	phase := time.Duration(int64(period) * int64(m.n) / int64(r.opts.clients))
	p.last, p.started = now, now
	p.deadline = now - now%period + phase
	for p.deadline <= now {
		p.deadline += period
	}
	p.client.OnSnapshot(func(s client.Snapshot) { w.snapshot(p, s.At-m.offset, s.Bytes) })
	p.client.OnState(func(s client.State) { w.state(p, s.Phase, p.client.Stats().Resumes) })
	r.bot.Start(p.client, m)
	w.players = append(w.players, p)
}

// snapshot counts a complete snapshot by the arrival of its last packet.
func (w *worker) snapshot(p *player, at time.Duration, bytes int) {
	if p.meter.slow {
		return
	}
	interval, first := at-p.arrived, p.arrived == 0
	p.arrived = at
	w.live.snapshots++
	if !first {
		record(w.live.interval, interval)
	}
	if !w.run.window.holds(at) {
		return
	}
	p.received++
	w.rec.snapshots++
	w.rec.bytes += uint64(bytes)
	if !first {
		record(w.rec.interval, interval)
	}
}

// state counts lost connections of a client, and seats that it resumed when it reconnected.
func (w *worker) state(p *player, now client.Phase, resumes uint64) {
	away := now == client.Reconnecting
	if away == p.away {
		return
	}
	p.away = away
	if p.meter.slow {
		if away {
			w.run.slowDrops.Add(1)
		}
		return
	}
	if away {
		w.run.drops.Add(1)
		w.run.away.Add(1)
		return
	}
	w.run.away.Add(-1)
	if resumes > p.resumes {
		p.resumes = resumes
		w.run.resumes.Add(1)
	}
}

// frame runs one frame of a client, and records its figures.
func (w *worker) frame(p *player, now time.Duration) {
	if p.leaving.Load() {
		w.depart(p, now)
		return
	}
	if p.breaking.Swap(false) {
		bridge.Client.Break(p.client)
	}
	w.late(p, now)
	p.client.Step(now - p.last)
	p.last = now
	p.follow(w.run, p.client.TickRate())
	if closed := p.client.Closed(); closed != nil {
		w.leave(p, closed)
		return
	}
	if !p.meter.blind && !p.meter.slow {
		w.look(p, now)
	}
	if w.run.phase() == verifying {
		w.check(p, now)
	}
}

// look records the client's figures after a frame.
func (w *worker) look(p *player, now time.Duration) {
	s := p.client.Stats()
	known := s.Synced && s.Applied > 0
	if known {
		record(w.live.age, s.Age)
	}
	if w.run.window.holds(now) {
		if known {
			record(w.rec.age, s.Age)
		}
		w.rec.feel.frame(&s, &p.stats)
	}
	p.stats = s
}

// follow adapts the frame rate of a bot to its room, which may be another than before.
func (p *player) follow(r *run, tick netloop.Rate) {
	if tick.Num > 0 && tick != p.rate {
		p.rate, p.period = tick, r.framePeriod(tick)
	}
}

// late records the lateness of a frame, and sets the next deadline. Frames that a stall has skipped
// count too, each from its own deadline, or a stall of a second would count as one late frame.
func (w *worker) late(p *player, now time.Duration) {
	for ; p.deadline <= now; p.deadline += p.period {
		if p.meter.slow {
			continue
		}
		record(w.live.lateness, now-p.deadline)
		if p.meter.measures(p.deadline) {
			record(w.rec.lateness, now-p.deadline)
		}
	}
}

// depart ends a client that shall leave.
func (w *worker) depart(p *player, now time.Duration) {
	p.meter.ending = true
	_ = p.client.Close() // It ends either way.
	if from := max(p.started, time.Duration(w.run.window.from.Load())); !p.meter.slow {
		w.played += max(0, min(now, time.Duration(w.run.window.to.Load()))-from)
	}
	if p.away && !p.meter.slow { // Its connection was broken.
		w.run.away.Add(-1)
	}
	p.gone, p.departed, w.departed = true, true, true
	w.run.rejoining.Add(1)
	w.run.connected.Add(-1)
	close(p.left)
}

// leave records the end of a connection that the run has not ended.
func (w *worker) leave(p *player, why error) {
	p.gone = true
	if p.meter.slow {
		w.run.slowDrops.Add(1)
	} else {
		w.lost.add(reason(why))
		w.live.reasons.add(reason(why))
	}
	w.run.gone.Add(1)
	if p.again || p.meter.slow {
		w.run.disturbed.Add(1)
	}
	p.verify = failed
	w.settle(p)
	close(p.left)
}

// settle counts, once, a client for which the run need not wait any more.
func (w *worker) settle(p *player) {
	if !p.settled {
		p.settled = true
		w.run.settled.Add(1)
	}
}

// handOver moves the live record to full if the sampler has put an empty one into spare, and
// continues with that.
func (w *worker) handOver() {
	if w.spare.Load() == nil {
		return
	}
	clean := w.spare.Swap(nil)
	w.survey(w.live)
	w.full.Store(w.live)
	w.live = clean
}

// request asks the worker for its live record, which the empty record clean replaces. collect adds
// the supplied record to sum, and returns it empty for the next request, or nil if the worker,
// which needs about the time idle, has not supplied it yet. Only the sampler's goroutine calls
// both.
func (w *worker) request(clean *live) { w.spare.Store(clean) }

func (w *worker) collect(sum *live) (used *live) {
	used = w.full.Swap(nil)
	if used != nil {
		sum.merge(used)
		used.reset()
	}
	return used
}

// check compares a client's state with the server's when its turn is due. Then it waits until the
// measured calls have their answers.
func (w *worker) check(p *player, now time.Duration) {
	switch p.verify {
	case notAsked:
		if now < w.run.turn(p.order) {
			return
		}
		p.verify = asked
		p.client.Verify(func(err error) {
			if err != nil {
				w.notEqual.add(reason(err))
				p.verify = failed
				return
			}
			p.verify = equal
		})
	case equal, failed, spared:
		if p.meter.pending == 0 {
			w.settle(p)
		}
	case asked:
	}
}
