package client

import (
	"errors"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/transport"
)

// receiver applies the server's state packets. Only Step's goroutine uses it.
type receiver struct {
	*core
	conn       *connection
	watchers   *watchers
	prediction *prediction
	views      *views

	losses     losses
	refusals   refusals
	verify     verification
	snapshot   Snapshot // the snapshot that is being received
	onSnapshot []func(Snapshot)
}

// restart resets the receiver for another connection.
func (r *receiver) restart(sendEvery uint32) {
	r.losses.restart(sendEvery)
	r.refusals, r.snapshot, r.verify.next = refusals{}, Snapshot{}, 0
}

// apply applies one state packet, and then calls the game's watchers.
func (r *receiver) apply(t *netloop.Tick, a *transport.Arrival) {
	applied, err := r.replica.Apply(a.State)
	switch {
	case err != nil:
		r.losses.received++
		r.refuse(err)
		return
	case !applied.Ack:
		r.losses.packet(&applied)
		r.stats.Stale++
		return
	}
	r.losses.packet(&applied)
	r.conn.session.AckState(applied.Packet)
	r.stats.Packets++
	r.watchers.notifyAll(t, applied.Tick)
	r.prediction.update(&applied, applied.SnapshotComplete && r.losses.gapless(applied.AsOf))
	r.complete(a, &applied)
	state, _ := r.replica.Digest()
	r.digestCompared(state)
}

// applyRecord applies a record of state that arrived over the stream. A failed record closes the
// connection: later state would be wrong without it, and a stream cannot resend.
func (r *receiver) applyRecord(t *netloop.Tick, a *transport.Arrival) {
	id, err := r.replica.ApplyLarge(a.State)
	if err != nil {
		r.stats.Malformed++
		r.conn.session.Close(transport.CodeProtocol, err.Error())
		return
	}
	r.conn.session.AckRecord(id)
	r.stats.Records++
	r.watchers.notifyAll(t, r.replica.Tick())
}

// complete adds a packet to its snapshot, and counts the snapshot once all packets have arrived.
func (r *receiver) complete(a *transport.Arrival, applied *replica.Applied) {
	if r.snapshot.Tick != applied.Tick {
		r.snapshot = Snapshot{Tick: applied.Tick}
	}
	r.snapshot.Bytes += len(a.State)
	r.snapshot.At = max(r.snapshot.At, a.At)
	if !applied.SnapshotComplete {
		return
	}
	r.stats.Snapshots++
	r.views.complete(&r.snapshot, applied.Reached, r.stats.Records)
	r.progress(applied)
	for _, fn := range r.onSnapshot {
		r.call("OnSnapshot", func() { fn(r.snapshot) })
	}
}

// progress updates the progress of the first state. State may arrive before the server's message
// that the client is admitted.
func (r *receiver) progress(applied *replica.Applied) {
	now := r.conn.present()
	switch loaded := applied.Total - applied.Left; {
	case now.Phase != Loading:
		return
	case applied.Left == 0:
		now = State{Phase: Playing, Closing: now.Closing}
	default: // Lost objects count as missing again, but the number decreases with the total alone.
		now.Loaded, now.Objects = min(max(loaded, now.Loaded), applied.Total), applied.Total
	}
	r.conn.become(now)
}

// refuse counts a packet of state that was refused, and requests the full state when there are too
// many.
func (r *receiver) refuse(err error) {
	r.stats.Malformed++
	if !r.refusals.refused(r.clock.Now()) {
		return
	}
	if errors.Is(err, replica.ErrMemory) {
		r.replica.Forget()
	}
	r.stats.FullStates++
	r.log.Warn("packets were refused, requesting the full state", "refused", r.stats.Malformed, "error", err)
	r.conn.session.RequestFullState()
}

// refusals decides when a client that refuses packets of state requests the full state. A correct
// server and client never need this. Without it, the objects of a packet that is refused again and
// again would remain outdated.
type refusals struct {
	count int           // number of refused packets since the last request
	from  time.Duration // earliest time of the next request
	wait  time.Duration // shortest time between the next request and the one after it
}

const (
	refusedBeforeFull = 3
	minFullWait       = time.Second // A server does not answer more often.
	maxFullWait       = time.Minute // A state that is too large for the client does not shrink.
)

// refused counts a packet that was refused, and reports whether to request the full state.
func (r *refusals) refused(now time.Duration) (request bool) {
	if r.count++; r.count < refusedBeforeFull || now < r.from {
		return false
	}
	wait := max(2*r.wait, minFullWait)
	if now-r.from > maxFullWait {
		wait = minFullWait // The last request was long ago: it had another cause.
	}
	r.wait = min(wait, maxFullWait)
	r.count, r.from = 0, now+r.wait
	return true
}
