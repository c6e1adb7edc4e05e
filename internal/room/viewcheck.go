package room

import (
	"time"

	"github.com/netloop/netloop/internal/input"
	"github.com/netloop/netloop/internal/metrics"
	"github.com/netloop/netloop/internal/netvar/state"
)

// Each input contains the view of its client: the two snapshots between which the player saw the
// world when it aimed. The game looks up the same moment in the history of its objects. A client
// may send any view, and would gain most from an old view, because it already knows how others have
// moved since. So the room replaces an implausible view, for one of four reasons:
//
//	reason   condition                                           replaced by
//	unseen   one of the snapshots has not been acknowledged      the same time: Client.around
//	apart    the client has a whole snapshot between the two     the same time: Client.around
//	old      further back than Spec.MaxRewind + Client.way       that limit
//	jumped   further from its recent views than a client's       the nearest accepted time
//	         clock and its jumps explain
//
// An honest client acknowledges a snapshot, at the latest, in the datagram of the first input that
// shows it, so only the check for old views depends on measured delays.

// viewCheck is the checked view of a client. It belongs to the room's goroutine.
type viewCheck struct {
	known   bool
	view    state.Moment  // view of the input that ran last; zero: unknown
	back    time.Duration // time from view to the step of that input
	clamped uint64

	// mid is the smoothed time from the recent views to their steps. judged is the game time of the
	// step at which mid was last updated. saved is the remaining allowance for jumps.
	mid    time.Duration
	judged time.Duration
	saved  time.Duration

	heard bool
	early time.Duration // smoothed time by which inputs arrive before their steps
}

// Bounds on the change of a view's distance: the game time from a client's view to its input's
// step.
const (
	// viewSlew limits the drift of that distance to 1/viewSlew of the elapsed time. An honest
	// client changes its delay by a twentieth of the time at most, and its lead by a hundredth.
	viewSlew = 16
	// viewBand is the tolerance to either side of the drifting distance: inputs of one frame share
	// one view, and a frame for which the next snapshot is missing shows the previous one.
	viewBand = 50 * time.Millisecond
	// Distances beyond viewBand use up an allowance. It grows by 1/jumpShare of the elapsed time,
	// an eighth of a second per second, up to maxJump. The maximum covers the time in which a
	// client's clock adapts to a new route.
	jumpShare = 8
	maxJump   = 250 * time.Millisecond
)

// clampReason is the reason why a view was clamped.
type clampReason uint8

const (
	asSent clampReason = iota
	unseen
	apart
	old
	jumped
	clampReasons
)

var clampNames = [clampReasons]string{"as_sent", "unseen", "apart", "old", "jumped"}

// View returns the moment that the client saw at the input that ran last, or the zero Moment if it
// is unknown.
func (c *Client) View() state.Moment { return c.viewCheck.view }

// ViewStats returns the distance of the last view from its step, and the number of clamped views.
func (c *Client) ViewStats() (back time.Duration, clamped uint64) {
	return c.viewCheck.back, c.viewCheck.clamped
}

// arrived records the time by which an input arrived before its step, and smooths it. A late input
// counts as 0. So do the first inputs, until the client's clock is ahead of the server's.
func (s *viewCheck) arrived(early time.Duration) {
	early = max(early, 0)
	if !s.heard {
		s.heard, s.early = true, early
	}
	s.early += (early - s.early) / 16
}

// checkView sets the client's view for the input that runs now. If the step's own input is missing
// or has no view, checkView advances the last view by the elapsed game time.
func (c *Client) checkView() {
	s, r := &c.viewCheck, c.room
	if r.spec.MaxRewind <= 0 {
		return
	}
	now := r.Inputs.stepAt
	v, missed := c.inputs.View()
	switch {
	case missed == 0 && v != input.View{}:
		s.judge(c, state.Moment{From: v.From, To: v.To, Alpha: float64(v.Alpha)}, now)
	case s.known:
		s.view = c.around(now - s.back)
	}
}

// judge accepts or clamps a view.
func (s *viewCheck) judge(c *Client, v state.Moment, now time.Duration) {
	r, why := c.room, asSent
	switch {
	case !c.peer.Has(v.From) || !c.peer.Has(v.To):
		why = unseen
	case c.peer.HasBetween(v.From, v.To):
		why = apart
	}
	if why != asSent {
		v = c.around(r.Inputs.viewedAt(v))
	}
	said := now - r.Inputs.viewedAt(v)
	back := said
	if most := r.spec.MaxRewind + c.way(); back > most {
		back, why = most, old
	}
	if to, ok := s.follow(now, back); !ok {
		back, why = to, jumped
	}
	if back != said {
		v = c.around(now - back)
	}
	s.view, s.back = v, back
	r.Inputs.views[why]++
	if why != asSent {
		s.clamped++
	}
}

// way returns the estimated time from the creation of an input on the client to its step: half a
// round trip, and the time that inputs wait for their steps. It is at most MaxRewind.
func (c *Client) way() time.Duration {
	return min(c.link.SRTT/2+c.viewCheck.early, c.room.spec.MaxRewind)
}

// follow reports whether a view's distance back from its step fits the recent views, and returns
// the accepted distance: back itself, or the nearest bound.
func (s *viewCheck) follow(now, back time.Duration) (to time.Duration, ok bool) {
	if !s.known {
		s.known, s.mid, s.judged, s.saved = true, back, now, maxJump
		return back, true
	}
	passed := now - s.judged
	s.judged = now
	s.saved = min(s.saved+passed/jumpShare, maxJump)
	s.mid += min(max(back-s.mid, -passed/viewSlew), passed/viewSlew)
	far := back - s.mid
	over := max(far, -far) - viewBand
	if over <= 0 {
		return back, true
	}
	paid := min(over, s.saved)
	s.saved -= paid
	if far < 0 {
		s.mid -= paid
		return s.mid - viewBand, paid == over
	}
	s.mid += paid
	return s.mid + viewBand, paid == over
}

// around converts a game time to a moment between the two nearest snapshots, one before and one
// after it, that the client has received completely. If one side has no such snapshot, around
// returns the nearest complete snapshot; if there is none at all, the zero Moment.
func (c *Client) around(at time.Duration) state.Moment {
	from, to := c.peer.Around(c.room.Timeline().TickAt(at))
	switch {
	case from == 0:
		return state.Moment{From: to, To: to}
	case to == 0:
		return state.Moment{From: from, To: from}
	}
	older, newer := c.room.Inputs.timeOf(from), c.room.Inputs.timeOf(to)
	return state.Moment{From: from, To: to, Alpha: float64(at-older) / float64(newer-older)}
}

// viewedAt returns the game time of a moment.
func (p *Inputs) viewedAt(m state.Moment) time.Duration {
	from := p.timeOf(m.From)
	return from + time.Duration(m.Alpha*float64(p.timeOf(m.To)-from))
}

// tickTime is the game time of a tick.
type tickTime struct {
	tick uint64
	at   time.Duration
}

// timeOf returns the game time of a tick. It caches results, because the views of all clients use
// the same few ticks, and the conversion takes a division.
func (p *Inputs) timeOf(tick uint64) time.Duration {
	k := &p.times[tick%state.Horizon]
	if k.tick != tick {
		*k = tickTime{tick, p.Timeline().GameTime(tick)}
	}
	return k.at
}

// Views implements metrics.Room.
func (m measured) Views(f metrics.Part) {
	for why, n := range m.r.Inputs.views {
		f.Set(n, clampNames[why])
	}
}
