package simulation

import (
	"time"
)

// ends checks that rooms end in time. The documents: Config.DrainTimeout, Server.CloseRoom and
// Room.OnDrain; "A room ends" in ARCHITECTURE.md.
//
//   - A room that was told to end has ended when its drain is over; of several the shortest counts.
//   - The end of the server shortens longer drains.
type ends struct {
	p    *play
	told map[roomKey]time.Duration // the time by which it ends
}

func newEnds(p *play) ends { return ends{p: p, told: map[roomKey]time.Duration{}} }

// tell notes that a room was told to end within a time.
func (e *ends) tell(key roomKey, drain time.Duration) {
	if e.p.w == nil || e.p.rooms.of(key) == nil {
		return
	}
	by := e.p.w.Now() + drain
	if was, ok := e.told[key]; !ok || by < was {
		e.told[key] = by
	}
}

// ending reports whether a room was told to end: it may close its clients at any time.
func (e *ends) ending(key roomKey) bool {
	_, told := e.told[key]
	return told
}

// drains notes that the server was told to end.
func (e *ends) drains(d time.Duration) {
	for _, name := range e.p.rooms.names() {
		e.tell(e.p.rooms.current(name), d)
	}
}

func (e *ends) draining(key roomKey, left time.Duration) {
	e.p.note("room %q drains for %v", key.name, left)
}

// ended checks that a room ends in time.
func (e *ends) ended(key roomKey) {
	if by, ok := e.told[key]; ok && e.p.w != nil {
		e.late(key, by)
	}
	delete(e.told, key)
}

func (e *ends) crashed() { clear(e.told) }

// check looks for rooms that are late.
func (e *ends) check() {
	for key, by := range e.told {
		e.late(key, by)
	}
}

func (e *ends) late(key roomKey, by time.Duration) {
	f := e.p.rooms.of(key)
	if f == nil {
		return
	}
	if now := e.p.w.Now(); now > max(by, e.p.rooms.stalled)+3*f.spec.Rate.Period()+2*nap+e.p.slack(finishing) {
		e.p.fail("ends", "room %q was to end by %v and runs at %v", key.name, by, now)
	}
}

func (e *ends) over() { e.check() }
