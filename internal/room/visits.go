package room

import "time"

// Who joins is sent the whole world, and who leaves at once and joins again gets it again. So a
// room remembers who has left soon after it came. Beyond some such visits a client catches up in
// the slow lane (netvar.Peer.Slow): its next join is taken like any other, and however many there
// are of its kind, they share what is little of a tick.

const (
	shortVisit  = 10 * time.Second // game time from joining to leaving
	freeVisits  = 3                // short ones of a holder that make no difference
	visitMemory = time.Minute      // after which they are forgotten, if there was no other
	maxVisitors = 4096             // that are remembered; beyond it the oldest is forgotten early
)

// visits are the short visits of players, or else of addresses. The room's goroutine owns it: it
// depends on nothing but joins, leaves and game time, so that a recording has it as well.
type visits struct {
	of    map[string]visit
	order []visitor // each of them once
}

type visit struct {
	count int
	until time.Duration // when it is forgotten
}

// visitor is whose visits may be forgotten at a time, if there was none since.
type visitor struct {
	holder string
	until  time.Duration
}

// left notes that a client leaves that came at a game time.
func (v *visits) left(holder string, came, now time.Duration) {
	if holder == "" || now-came >= shortVisit {
		return
	}
	v.forget(now)
	if v.of == nil {
		v.of = map[string]visit{}
	}
	one, until := v.of[holder], now+visitMemory
	if one.count == 0 {
		v.order = append(v.order, visitor{holder, until})
	}
	v.of[holder] = visit{count: one.count + 1, until: until}
	if len(v.order) > maxVisitors {
		delete(v.of, v.order[0].holder)
		v.order = v.order[1:]
	}
}

// forget forgets what is over.
func (v *visits) forget(now time.Duration) {
	for len(v.order) > 0 && v.order[0].until <= now {
		first := v.order[0]
		v.order = v.order[1:]
		if one := v.of[first.holder]; one.until > now {
			v.order = append(v.order, visitor{first.holder, one.until})
		} else {
			delete(v.of, first.holder)
		}
	}
}

// often reports whether a holder has left soon so often that it has to catch up slowly.
func (v *visits) often(holder string, now time.Duration) bool {
	one := v.of[holder]
	return one.count > freeVisits && one.until > now
}
