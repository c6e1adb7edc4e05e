package cluster

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/netloop/netloop/cluster/internal/answers"
)

// Memory is a cluster inside of one process. It starts no goroutine and reads no clock: its time
// is that of a function, and its members' functions and handlers run on the goroutines of its
// callers. Heartbeats and messages take no time. Faults can be injected, for simulations. Any
// goroutine may use it.
type Memory struct {
	clock func() time.Duration

	mu      sync.Mutex
	epoch   Epoch
	names   map[string]*claim
	kept    int       // names with a time, expired ones included until the next sweep
	members []*member // in the order of their ids
	down    bool      // the store answers nobody
	wake    chan struct{}
	due     []func() // functions of members, to be called without the lock

	suspects int // pairs of a member and one that it suspects, as of Settle
}

// claim is a taken name.
type claim struct {
	holder *member // nil: until a time
	epoch  Epoch
	until  time.Duration
}

// NewMemory returns a cluster without members, with the epoch before its first claim. The clock
// must not run backwards.
func NewMemory(before Epoch, clock func() time.Duration) *Memory {
	return &Memory{clock: clock, epoch: before, names: map[string]*claim{}, wake: make(chan struct{})}
}

// Member returns a new server's Cluster.
func (h *Memory) Member() Cluster {
	return &member{hub: h, held: map[string]*hold{}, cut: map[*member]time.Duration{}, seen: map[*member]*board{}, log: answers.NewLog(MaxCalls, MaxAnswers)}
}

// do calls fn with the lock and the present time, and then the functions that became due.
func (h *Memory) do(fn func(now time.Duration)) {
	h.mu.Lock()
	fn(h.clock())
	due := h.due
	h.due = nil
	h.mu.Unlock()
	for _, f := range due {
		f()
	}
}

// Freeze stops a server as SIGSTOP does, or continues it: it sends and receives nothing. Calls to
// it wait. A test does not call methods of a frozen server.
func (h *Memory) Freeze(id string, frozen bool) {
	h.do(func(now time.Duration) {
		h.eachLocked(id, func(m *member) { m.frozen = frozen })
		h.connectLocked(now)
	})
}

// Partition puts a server on a side of the network. Servers of different sides do not hear each
// other, and the store is on side 0, where all servers are at first.
func (h *Memory) Partition(id string, side int) {
	h.do(func(now time.Duration) {
		h.eachLocked(id, func(m *member) { m.side = side })
		h.connectLocked(now)
	})
}

// StoreGone makes the store answer nobody, or all again. It forgets nothing.
func (h *Memory) StoreGone(gone bool) {
	h.do(func(now time.Duration) {
		h.down = gone
		h.connectLocked(now)
	})
}

// Settle brings the cluster to the present time: it sends waiting boards, ends calls that are
// late, and calls Changed. A program calls it about once in a BoardInterval.
func (h *Memory) Settle() {
	h.do(func(now time.Duration) {
		suspects, sent := 0, false
		for _, m := range h.members {
			sent = m.sendLocked(now) || sent
			m.expireLocked(now)
			for _, since := range m.cut {
				if now-since >= beats(SuspectBeats) {
					suspects++
				}
			}
		}
		if sent || suspects != h.suspects {
			h.suspects = suspects
			h.changedLocked()
		}
	})
}

func (h *Memory) eachLocked(id string, fn func(*member)) {
	for _, m := range h.members {
		if m.self.Server.ID == id {
			fn(m)
		}
	}
}

// changedLocked reports a change to all members.
func (h *Memory) changedLocked() {
	for _, m := range h.members {
		if m.self.Changed != nil && !m.frozen && !m.closed {
			h.due = append(h.due, m.self.Changed)
		}
	}
}

// connectLocked notes the connections that have ended or begun.
func (h *Memory) connectLocked(now time.Duration) {
	for _, m := range h.members {
		if m.closed {
			continue
		}
		m.storeLocked(now, !h.down && !m.frozen && m.side == 0)
		for _, other := range h.members {
			_, cut := m.cut[other]
			switch hears := m.hearsLocked(other); {
			case hears:
				delete(m.cut, other)
				m.seen[other] = other.sent
			case !cut && !other.closed:
				m.cut[other] = now
				if m.seen[other] != nil { // Not that of a member that it never heard.
					m.seen[other] = other.sent
				}
			}
		}
	}
	for _, m := range h.members {
		m.takeLocked(now)
	}
	h.members = slices.DeleteFunc(h.members, func(m *member) bool { return m.closed && h.forgottenLocked(m, now) })
	close(h.wake)
	h.wake = make(chan struct{})
	h.changedLocked()
}

// forgottenLocked reports whether no member lists a closed one, and no name is its own. Then it
// also leaves the members' tables.
func (h *Memory) forgottenLocked(gone *member, now time.Duration) bool {
	for _, c := range h.names {
		if c.holder == gone {
			return false
		}
	}
	for _, m := range h.members {
		if since, cut := m.cut[gone]; cut && now-since < beats(ForgetBeats) && !m.closed {
			return false
		}
	}
	for _, m := range h.members {
		delete(m.cut, gone)
		delete(m.seen, gone)
	}
	return true
}

// joinLocked adds a member.
func (h *Memory) joinLocked(m *member) error {
	at, taken := slices.BinarySearchFunc(h.members, m.self.Server.ID, func(m *member, id string) int { return cmp.Compare(m.self.Server.ID, id) })
	if taken || len(h.members) >= MaxServers {
		return ErrTaken
	}
	h.members = slices.Insert(h.members, at, m)
	return nil
}

// claimLocked takes a name for a member that the store hears.
func (h *Memory) claimLocked(m *member, name string, keep, now time.Duration) (Epoch, error) {
	if c := h.names[name]; c != nil && !c.freeLocked(m, now) {
		return 0, ErrTaken
	}
	if keep == 0 && m.held[name] == nil && len(m.held) >= MaxNames || keep > 0 && !h.keepsLocked(now) {
		return 0, ErrBusy
	}
	h.epoch++
	c := &claim{epoch: h.epoch}
	if keep > 0 {
		c.until = now + keep
		h.kept++
	} else {
		c.holder = m
		m.held[name] = &hold{epoch: c.epoch}
	}
	h.names[name] = c
	return c.epoch, nil
}

// keepsLocked reports whether another name may be kept for a time. At the limit it drops expired
// names.
func (h *Memory) keepsLocked(now time.Duration) bool {
	if h.kept < MaxKept {
		return true
	}
	h.kept = 0
	for name, c := range h.names {
		switch {
		case c.holder != nil:
		case now >= c.until:
			delete(h.names, name)
		default:
			h.kept++
		}
	}
	return h.kept < MaxKept
}

// freeLocked reports whether a member may take a name that was claimed before. It ends the lease
// of a holder that was silent for too long, while the store heard this member.
func (c *claim) freeLocked(m *member, now time.Duration) bool {
	if c.holder == nil {
		return now >= c.until
	}
	if c.holder.away && now-max(c.holder.awaySince, m.storeSince) >= beats(LeaseBeats) {
		c.holder.expired = true
	}
	return c.holder.expired
}

// waitStore waits until the store hears m, and reports false when ctx ends before.
func (h *Memory) waitStore(ctx context.Context, m *member) bool {
	for {
		h.mu.Lock()
		away, wake := m.away && !m.closed, h.wake
		h.mu.Unlock()
		if !away {
			return true
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return false
		}
	}
}
