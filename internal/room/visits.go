package room

import "time"

// A room sends each joining client the whole world, also a client that leaves at once and joins
// again. So a room counts short visits. After more than freeVisits short visits, a client catches
// up in the slow queue (netvar.Peer.Slow): its next join is admitted as usual, but all such clients
// together share a small part of a tick.

const (
	shortVisit  = 10 * time.Second // game time from joining to leaving
	freeVisits  = 3                // short visits of a holder without consequences
	visitMemory = time.Minute      // time from the last short visit until all are forgotten
	// limit of stored holders; beyond it the oldest holder is removed early
	maxVisitors = 4096
)

// visits stores the number of short visits by holder: a player, or the address of a client without
// a player. It belongs to the room's goroutine, and depends only on joins, leaves and game time, so
// that a replay counts the same.
type visits struct {
	of    map[string]visit
	order []visitExpiry // each holder once, ordered by expiry
}

type visit struct {
	count int
	until time.Duration // when the entry expires
}

// visitExpiry is an entry in the queue of expiries. The short visits of the holder are removed at
// the time until, or later if the holder has made another short visit by then.
type visitExpiry struct {
	holder string
	until  time.Duration
}

// left records that a client has left, and counts its visit if it was short. came is the game
// time of the client's join.
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
		v.order = append(v.order, visitExpiry{holder, until})
	}
	v.of[holder] = visit{count: one.count + 1, until: until}
	if len(v.order) > maxVisitors {
		delete(v.of, v.order[0].holder)
		v.order = v.order[1:]
	}
}

// forget removes expired visits.
func (v *visits) forget(now time.Duration) {
	for len(v.order) > 0 && v.order[0].until <= now {
		first := v.order[0]
		v.order = v.order[1:]
		if one := v.of[first.holder]; one.until > now {
			v.order = append(v.order, visitExpiry{first.holder, one.until})
		} else {
			delete(v.of, first.holder)
		}
	}
}

// often reports whether a holder has had too many short visits, and must catch up slowly.
func (v *visits) often(holder string, now time.Duration) bool {
	one := v.of[holder]
	return one.count > freeVisits && one.until > now
}
