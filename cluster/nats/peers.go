package nats

import (
	"bytes"
	"slices"
	"time"

	"github.com/netloop/netloop/cluster"
	clusterv1 "github.com/netloop/netloop/proto/netloop/cluster/v1"
)

const (
	// maxLater is the limit of changes that wait for a whole board: two seconds of them.
	maxLater = 40
	// offsetBeats is the age of an estimate of another server's uptime, in heartbeats: a new one
	// is made before the clocks of two machines drift apart by a millisecond.
	offsetBeats = 20
)

// peers has the other servers, as this one hears them. It needs a lock; its times are uptimes of
// this server.
type peers struct {
	beat time.Duration
	all  map[string]*peer
}

// peer is another server.
type peer struct {
	server cluster.Server
	listed bool // a heartbeat was heard: the others are known from records of the store
	term   uint64
	count  uint64        // largest number of a heartbeat
	heard  time.Duration // time of that
	shown  bool          // as suspect, at the last sweep

	// The largest known difference of uptimes, the peer's less this one's: the heartbeat with it
	// had the shortest way. Of the present and the previous offsetBeats.
	offset, before time.Duration
	offsetAt       time.Duration

	board   board
	wanted  time.Duration // time of the last request for the whole board
	waiting bool          // for the whole board
	part    *board        // received parts of it
	parts   uint32
	later   []*clusterv1.Changes // received meanwhile
}

// get returns a peer, which it adds up to the limit; otherwise nil.
func (p *peers) get(id string) *peer {
	v := p.all[id]
	if v == nil && len(p.all) < cluster.MaxServers {
		v = &peer{}
		p.all[id] = v
	}
	return v
}

// beatOf handles a heartbeat. It reports whether the list of servers has changed, and whether the
// whole board is needed.
func (p *peers) beatOf(l *clusterv1.Lease, now time.Duration) (changed, want bool) {
	id := l.GetId()
	switch v := p.all[id]; {
	case l.GetLeft():
		delete(p.all, id)
		return v != nil && v.listed, false
	case l.GetEnded():
		return false, false
	}
	v := p.get(id)
	if v == nil {
		return false, false
	}
	s := serverOf(l)
	changed = !v.listed || p.suspect(v, now) || !sameServer(&v.server, &s)
	if !v.listed {
		v.offset, v.before, v.offsetAt = time.Duration(l.GetUptime())-now, time.Duration(l.GetUptime())-now, now
	}
	v.server, v.listed, v.shown = s, true, false
	v.note(l.GetTerm(), l.GetCount(), now)
	if now-v.offsetAt >= offsetBeats*p.beat {
		v.before, v.offset, v.offsetAt = v.offset, time.Duration(l.GetUptime())-now, now
	}
	v.offset = max(v.offset, time.Duration(l.GetUptime())-now)
	return changed, v.board.version < l.GetBoard() && p.want(v, now)
}

// sameServer compares two servers without their loads.
func sameServer(a, b *cluster.Server) bool {
	return a.ID == b.ID && a.Region == b.Region && a.Zone == b.Zone && a.Schema == b.Schema && a.Suspect == b.Suspect &&
		slices.EqualFunc(a.Addresses, b.Addresses, func(a, b cluster.Address) bool {
			return a.Carrier == b.Carrier && a.Addr == b.Addr && a.Name == b.Name && slices.EqualFunc(a.Hashes, b.Hashes, bytes.Equal)
		})
}

// note notes that a heartbeat was heard, or that the store has it.
func (v *peer) note(term, count uint64, now time.Duration) {
	if term > v.term || term == v.term && count > v.count {
		v.term, v.count, v.heard = term, count, now
	}
}

// until returns the uptime of a peer at a time of this server. It is never too large, so a call is
// not accepted late.
func (v *peer) until(at time.Duration) time.Duration { return at + max(v.offset, v.before) }

func (p *peers) suspect(v *peer, now time.Duration) bool {
	return now-v.heard >= cluster.SuspectBeats*p.beat
}

// silent reports whether a lease, whose record has that heartbeat, was silent for LeaseBeats, of
// which this server has heard all since a time. A newer heartbeat than known is noted.
func (p *peers) silent(id string, term, count uint64, since, now time.Duration) bool {
	v := p.get(id)
	if v == nil {
		return false
	}
	v.note(term, count, now)
	return now-max(v.heard, since) >= cluster.LeaseBeats*p.beat
}

// sweep forgets peers that were not heard for long, and reports whether the list has changed since
// the last sweep.
func (p *peers) sweep(now time.Duration) (changed bool) {
	for id, v := range p.all {
		if now-v.heard >= cluster.ForgetBeats*p.beat {
			delete(p.all, id)
			changed = changed || v.listed
		} else if s := p.suspect(v, now); s != v.shown {
			v.shown = s
			changed = changed || v.listed
		}
	}
	return changed
}

// want reports whether to request the whole board of a peer: about once in each heartbeat.
func (p *peers) want(v *peer, now time.Duration) bool {
	if v.wanted != 0 && now-v.wanted < p.beat/2 {
		return false
	}
	v.wanted, v.waiting, v.part, v.later = now, true, nil, nil
	return true
}

// changes applies changes of a board. It reports whether the board has changed, and whether the
// whole one is needed.
func (p *peers) changes(c *clusterv1.Changes, now time.Duration) (changed, want bool) {
	v := p.all[c.GetId()]
	if v == nil || !v.listed || c.GetTo() <= v.board.version {
		return false, false
	}
	if c.GetFrom() == v.board.version && v.board.apply(c.GetRooms()) {
		v.board.version = c.GetTo()
		return true, false
	}
	if want = p.want(v, now); v.waiting && len(v.later) < maxLater {
		v.later = append(v.later, c)
	}
	return false, want
}

// partOf adds a part of a whole board, and reports whether the board has changed.
func (p *peers) partOf(id string, m *clusterv1.Part) bool {
	v := p.all[id]
	if v == nil || !v.waiting {
		return false
	}
	if m.GetPart() == 0 {
		v.part, v.parts = &board{version: m.GetVersion()}, 0
	}
	if v.part == nil || v.part.version != m.GetVersion() || v.parts != m.GetPart() || !v.part.apply(m.GetRooms()) {
		v.part = nil
		return false
	}
	v.parts++
	if !m.GetLast() {
		return false
	}
	changed := v.part.version > v.board.version
	if changed {
		v.board = *v.part
	}
	for _, c := range v.later {
		if c.GetFrom() == v.board.version && v.board.apply(c.GetRooms()) {
			v.board.version = c.GetTo()
		}
	}
	v.part, v.later, v.waiting = nil, nil, false
	return changed
}

// servers returns the listed peers.
func (p *peers) servers(now time.Duration) (all []cluster.Server) {
	for _, v := range p.all {
		if v.listed {
			s := v.server
			s.Suspect = p.suspect(v, now)
			all = append(all, s)
		}
	}
	return all
}

// boards returns the boards of the listed peers.
func (p *peers) boards(now time.Duration) (all []cluster.Board) {
	for id, v := range p.all {
		if v.listed {
			all = append(all, cluster.Board{Server: id, Suspect: p.suspect(v, now), Version: v.board.version, Rooms: v.board.share()})
		}
	}
	return all
}
