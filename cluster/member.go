package cluster

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/netloop/netloop/cluster/internal/answers"
)

// member implements Cluster in a Memory, whose lock guards its fields.
type member struct {
	hub     *Memory
	self    Member
	handler Handler
	joined  bool
	closed  bool
	calls   int // number of calls without an ID
	serving int

	frozen bool
	side   int
	cut    map[*member]time.Duration // members that this one does not hear, since a time

	away       bool // the store does not hear this member
	awaySince  time.Duration
	storeSince time.Duration // otherwise: since this time
	expired    bool          // another member has ended the lease
	held       map[string]*hold
	released   []string // names without an answer of the store

	rooms   map[string][]byte
	unsent  bool
	sent    *board // as others see it; immutable
	sentAt  time.Duration
	bytes   int
	seen    map[*member]*board
	waiting []*delivery // calls that have not arrived
	log     *answers.Log
}

// hold is a name that a member has claimed.
type hold struct {
	epoch Epoch
	lost  bool
}

type board struct {
	version uint64
	rooms   []Room
}

// Join implements Cluster.
func (m *member) Join(ctx context.Context, self Member) (err error) {
	if err := self.Server.Check(); err != nil {
		return err
	}
	m.hub.do(func(now time.Duration) {
		if m.joined {
			err = ErrTaken
			return
		}
		m.self, m.rooms, m.sent = self, map[string][]byte{}, &board{}
		m.away, m.awaySince = true, now
		if err = m.hub.joinLocked(m); err == nil {
			m.joined = true
			m.hub.connectLocked(now)
		}
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, StoreTime)
	defer cancel()
	if !m.hub.waitStore(ctx, m) {
		return ErrBusy
	}
	return nil
}

// hearsLocked reports whether messages of another member arrive.
func (m *member) hearsLocked(other *member) bool {
	return m == other || !m.frozen && !other.frozen && !other.closed && m.side == other.side
}

// listsLocked reports whether the member lists another one, and whether as suspect.
func (m *member) listsLocked(other *member, now time.Duration) (lists, suspect bool) {
	since, cut := m.cut[other]
	if !cut {
		return !other.closed, false
	}
	return now-since < beats(ForgetBeats), now-since >= beats(SuspectBeats)
}

// storeLocked notes whether the store hears the member. One that returns checks its names.
func (m *member) storeLocked(now time.Duration, hears bool) {
	if hears != m.away {
		return
	}
	m.away = !hears
	if m.away {
		m.awaySince = now
		return
	}
	m.storeSince = now
	m.releaseLocked()
	if !m.expired {
		return
	}
	m.expired = false
	for _, name := range slices.Sorted(maps.Keys(m.held)) {
		own := m.held[name]
		if c := m.hub.names[name]; !own.lost && (c == nil || c.epoch != own.epoch) {
			own.lost = true
			if m.self.Lost != nil {
				m.hub.due = append(m.hub.due, func() { m.self.Lost(name, own.epoch) })
			}
		}
	}
}

// Servers implements Cluster.
func (m *member) Servers() (all []Server) {
	m.hub.do(func(now time.Duration) {
		for _, other := range m.hub.members {
			lists, suspect := m.listsLocked(other, now)
			if !lists {
				continue
			}
			s := other.self.Server
			if s.Load = (Load{}); other.self.Load != nil {
				s.Load = other.self.Load()
			}
			s.Suspect = suspect
			all = append(all, s)
		}
	})
	return all
}

// ask calls fn when the store hears the member.
func (m *member) ask(ctx context.Context, name string, fn func(now time.Duration) error) (err error) {
	if err := CheckName(name); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, StoreTime)
	defer cancel()
	for {
		if !m.hub.waitStore(ctx, m) {
			return ErrBusy
		}
		asked := false
		m.hub.do(func(now time.Duration) {
			switch {
			case m.closed || !m.joined:
				err, asked = ErrClosed, true
			case !m.away:
				err, asked = fn(now), true
			}
		})
		if asked {
			return err
		}
	}
}

// Claim implements Cluster.
func (m *member) Claim(ctx context.Context, name string, keep time.Duration) (e Epoch, err error) {
	err = m.ask(ctx, name, func(now time.Duration) (err error) {
		e, err = m.hub.claimLocked(m, name, keep, now)
		return err
	})
	return e, err
}

// Hold implements Cluster.
func (m *member) Hold(name string, e Epoch) (err error) {
	m.hub.do(func(now time.Duration) {
		own := m.held[name]
		switch {
		case m.closed:
			err = ErrClosed
		case own == nil || own.epoch < e:
			err = ErrGone
		case own.lost || own.epoch > e:
			err = ErrTaken
		case m.away && now-m.awaySince >= beats(HoldBeats):
			err = ErrBusy
		}
	})
	return err
}

// Release implements Cluster. A name without an answer of the store is free when the store hears
// the member again.
func (m *member) Release(ctx context.Context, name string, e Epoch) error {
	m.hub.do(func(time.Duration) {
		if own := m.held[name]; own != nil && own.epoch == e {
			delete(m.held, name)
			m.released = append(m.released, name)
		}
	})
	return m.ask(ctx, name, func(time.Duration) error {
		m.releaseLocked()
		return nil
	})
}

// releaseLocked removes the claims that the member no longer holds.
func (m *member) releaseLocked() {
	for _, name := range m.released {
		if c := m.hub.names[name]; c != nil && c.holder == m && m.held[name] == nil {
			delete(m.hub.names, name)
		}
	}
	m.released = nil
}

// Find implements Cluster.
func (m *member) Find(ctx context.Context, name string) (found Holder, err error) {
	err = m.ask(ctx, name, func(now time.Duration) error {
		c := m.hub.names[name]
		if c == nil || c.freeLocked(m, now) {
			return ErrGone
		}
		found.Epoch = c.epoch
		if c.holder != nil {
			found.Server = c.holder.self.Server.ID
		}
		return nil
	})
	return found, err
}

// Announce implements Cluster.
func (m *member) Announce(room string, entry []byte) (ok bool) {
	m.hub.do(func(now time.Duration) {
		was, had := m.rooms[room]
		bytes := m.bytes
		if had {
			bytes -= len(room) + len(was)
		}
		switch {
		case m.rooms == nil || m.closed:
			return
		case entry == nil:
			delete(m.rooms, room)
		case CheckName(room) != nil || len(entry) > MaxEntry || bytes+len(room)+len(entry) > MaxBoard || !had && len(m.rooms) >= MaxRooms:
			return
		default:
			m.rooms[room] = entry
			bytes += len(room) + len(entry)
		}
		m.bytes, m.unsent, ok = bytes, true, true
		if m.sendLocked(now) {
			m.hub.changedLocked()
		}
	})
	return ok
}

// sendLocked sends the board to the members, if it has changed and the last message is old enough.
func (m *member) sendLocked(now time.Duration) bool {
	if !m.unsent || m.frozen || m.sent.version > 0 && now-m.sentAt < BoardInterval {
		return false
	}
	next := &board{version: m.sent.version + 1, rooms: make([]Room, 0, len(m.rooms))}
	for _, name := range slices.Sorted(maps.Keys(m.rooms)) {
		next.rooms = append(next.rooms, Room{name, m.rooms[name]})
	}
	m.sent, m.sentAt, m.unsent = next, now, false
	return true
}

// Boards implements Cluster.
func (m *member) Boards() (all []Board) {
	m.hub.do(func(now time.Duration) {
		sent := false
		for _, other := range m.hub.members {
			lists, suspect := m.listsLocked(other, now)
			if m.hearsLocked(other) {
				sent = other.sendLocked(now) || sent
				m.seen[other] = other.sent
			}
			if b := m.seen[other]; lists && b != nil {
				all = append(all, Board{Server: other.self.Server.ID, Suspect: suspect, Version: b.version, Rooms: b.rooms})
			}
		}
		if sent {
			m.hub.changedLocked()
		}
	})
	return all
}

// Serve implements Cluster.
func (m *member) Serve(h Handler) { m.hub.do(func(time.Duration) { m.handler = h }) }

// Health implements Cluster.
func (m *member) Health() (h Health) {
	m.hub.do(func(now time.Duration) {
		switch {
		case m.closed || !m.joined:
			h.Text = ErrClosed.Error()
		case m.away:
			h.Text = "the cluster's store has not answered for " + (now - m.awaySince).String() + ": rooms of this server work, new names and calls to other servers are refused as busy"
		default:
			h.OK = true
		}
	})
	return h
}

// Close implements Cluster.
func (m *member) Close(context.Context) error {
	m.hub.do(func(now time.Duration) {
		if m.closed || !m.joined {
			m.closed = true
			return
		}
		if !m.away {
			m.released = slices.Collect(maps.Keys(m.held))
			clear(m.held)
			m.releaseLocked()
		}
		m.closed = true
		m.away, m.awaySince = true, now
		m.endCallsLocked()
		m.hub.connectLocked(now)
	})
	return nil
}

// newIDLocked returns the ID of a call without one.
func (m *member) newIDLocked() string {
	m.calls++
	return m.self.Server.ID + "/" + strconv.Itoa(m.calls)
}
