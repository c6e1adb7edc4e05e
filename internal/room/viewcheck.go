package room

import (
	"time"

	"github.com/netloop/netloop/internal/input"
	"github.com/netloop/netloop/internal/metrics"
	"github.com/netloop/netloop/internal/netvar"
)

// With each input comes the view of its client: the two snapshots between which the player saw the
// world, who aimed at what was there. The game looks at the same moment in its objects' history. A
// client may say anything, and would like best to aim at the past, where it knows how others have
// moved. So a view counts as far as it can be true, and what is beyond becomes the nearest that
// can:
//
//	unseen   one of the snapshots has not been acknowledged      the newest whole one before it
//	apart    the client has a whole one between the two          that neighbour, at the same time
//	old      further back than Spec.MaxRewind and the way        as far back as may be
//	jumped   further from where its views have been than a       as far as may be
//	         client's clock and its jumps take it
//
// An honest client acknowledges what it shows in the datagram of the input, at the latest, so
// nothing of this depends on how long anything takes but the third.

// sight is what a room knows of what a client sees. It belongs to the room's goroutine.
type sight struct {
	known   bool
	view    netvar.Moment // when it made the input that ran last; zero is unknown
	back    time.Duration // how far that lay before the input's step
	clamped uint64

	// Where the views of the last time are: how far back, the game time of the step for which that
	// was found, and what is left for jumps.
	mid    time.Duration
	judged time.Duration
	saved  time.Duration

	heard bool
	early time.Duration // before their steps inputs come, smoothed
}

// Bounds of how the view of a client moves against the game time of its inputs' steps.
const (
	// viewSlew is how slowly it drifts, one part of so many: a client changes its delay by a
	// twentieth of the time at most, and its lead by a hundredth.
	viewSlew = 16
	// viewBand is how far it strays from there, to either side: inputs of one frame share one view,
	// and a frame that waits for a snapshot shows the one before.
	viewBand = 50 * time.Millisecond
	// What is further costs, and comes back by one part of so many of the time: an eighth of a
	// second in each. A client may save up for the time that its clocks take to find a new route.
	jumpShare = 8
	maxJump   = 250 * time.Millisecond
)

// clampReason says why a view counts as another.
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

// View returns what the client saw when it made the input that ran last. The zero Moment is
// unknown.
func (c *Client) View() netvar.Moment { return c.sight.view }

// SightStats returns how far before its step that was, and how many views have been clamped.
func (c *Client) SightStats() (back time.Duration, clamped uint64) {
	return c.sight.back, c.sight.clamped
}

// arrived takes how long before its step an input came. What came late, as the first ones do until
// the client's clock leads, has not waited.
func (s *sight) arrived(early time.Duration) {
	early = max(early, 0)
	if !s.heard {
		s.heard, s.early = true, early
	}
	s.early += (early - s.early) / 16
}

// look finds what a client saw who made the input that runs now. Without one, or without what
// it saw, time has gone on for it as for everybody.
func (c *Client) look() {
	s, r := &c.sight, c.room
	if r.spec.MaxRewind <= 0 {
		return
	}
	now := r.inputs.stepAt
	v, missed := c.inputs.View()
	switch {
	case missed == 0 && v != input.View{}:
		s.judge(c, netvar.Moment{From: v.From, To: v.To, Alpha: float64(v.Alpha)}, now)
	case s.known:
		s.view = c.around(now - s.back)
	}
}

// judge takes a view for what it may be.
func (s *sight) judge(c *Client, v netvar.Moment, now time.Duration) {
	r, why := c.room, asSent
	switch {
	case !c.peer.Has(v.From) || !c.peer.Has(v.To):
		why = unseen
	case c.peer.HasBetween(v.From, v.To):
		why = apart
	}
	if why != asSent {
		v = c.around(r.viewedAt(v))
	}
	said := now - r.viewedAt(v)
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
	r.inputs.views[why]++
	if why != asSent {
		s.clamped++
	}
}

// way is how long before its step an input was made, as far as that counts: half a round trip
// before it came.
func (c *Client) way() time.Duration {
	return min(c.link.SRTT/2+c.sight.early, c.room.spec.MaxRewind)
}

// follow reports whether a view may lie so far back, and how far it may.
func (s *sight) follow(now, back time.Duration) (to time.Duration, ok bool) {
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

// around returns the moment at a game time between two snapshots that the client has whole, next
// to each other; the nearest one, if there is none on one side, and the zero Moment without any.
func (c *Client) around(at time.Duration) netvar.Moment {
	from, to := c.peer.Around(c.room.Timeline().TickAt(at))
	switch {
	case from == 0:
		return netvar.Moment{From: to, To: to}
	case to == 0:
		return netvar.Moment{From: from, To: from}
	}
	older, newer := c.room.timeOf(from), c.room.timeOf(to)
	return netvar.Moment{From: from, To: to, Alpha: float64(at-older) / float64(newer-older)}
}

// viewedAt returns the game time of a moment.
func (r *Room) viewedAt(m netvar.Moment) time.Duration {
	from := r.timeOf(m.From)
	return from + time.Duration(m.Alpha*float64(r.timeOf(m.To)-from))
}

// tickTime is the game time of a tick.
type tickTime struct {
	tick uint64
	at   time.Duration
}

// timeOf returns the game time of a tick. The views of all clients are of the same few, and it
// takes a division to find out.
func (r *Room) timeOf(tick uint64) time.Duration {
	k := &r.inputs.times[tick%netvar.Horizon]
	if k.tick != tick {
		*k = tickTime{tick, r.Timeline().GameTime(tick)}
	}
	return k.at
}

// Views implements metrics.Room.
func (m measured) Views(f metrics.Part) {
	for why, n := range m.inputs.views {
		f.Set(n, clampNames[why])
	}
}
