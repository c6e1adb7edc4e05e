package token

import (
	"container/heap"
	"crypto/sha256"
	"sync"
	"time"
)

// maxSpent limits the stored ids: 18 joins a second for the longest lifetime of a token, 1 000 a
// second for one of a minute. They take about 4 MiB.
const maxSpent = 1 << 16

// spent stores the ids of used tokens until the tokens have expired. It may be used from any
// goroutine.
type spent struct {
	mu   sync.Mutex
	held map[spentID]struct{}
	next expiries
}

// spentID identifies a token by a hash, so that its size does not depend on the length of the id.
type spentID [16]byte

func newSpentID(key []byte, jti string) spentID {
	sum := sha256.Sum256(append(append(make([]byte, 0, len(key)+len(jti)), key...), jti...))
	return spentID(sum[:])
}

// usage is the result of an attempt to use a token.
type usage uint8

const (
	used usage = iota
	usedBefore
	noMemory
)

// use stores an id until a time.
func (s *spent) use(id spentID, until, now time.Time) usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.next) > 0 && s.next[0].until < now.Unix() {
		delete(s.held, s.next[0].id)
		heap.Pop(&s.next)
	}
	if _, ok := s.held[id]; ok {
		return usedBefore
	}
	if len(s.held) >= maxSpent {
		return noMemory
	}
	if s.held == nil {
		s.held = map[spentID]struct{}{}
	}
	s.held[id] = struct{}{}
	heap.Push(&s.next, expiry{id, until.Unix()})
	return used
}

// size returns the number of stored ids.
func (s *spent) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.held)
}

// expiry is the time at which an id may be removed.
type expiry struct {
	id    spentID
	until int64 // seconds since 1970
}

// expiries is a heap, the earliest first.
type expiries []expiry

func (e expiries) Len() int           { return len(e) }
func (e expiries) Less(i, j int) bool { return e[i].until < e[j].until }
func (e expiries) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *expiries) Push(x any)        { *e = append(*e, x.(expiry)) }

// Pop implements heap.Interface.
func (e *expiries) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}
