package token

import (
	"container/heap"
	"crypto/sha256"
	"sync"
	"time"
)

// maxUsedIDs limits the stored ids, which take about 4 MiB: enough for 18 joins per second with
// tokens of the longest lifetime, or for 1 000 joins per second with tokens of one minute.
const maxUsedIDs = 1 << 16

// usedIDs stores the ids of used tokens until the tokens have expired. It may be used from any
// goroutine.
type usedIDs struct {
	mu   sync.Mutex
	held map[usedID]struct{}
	next expiries
}

// usedID identifies a token by a hash, so that its size does not depend on the length of the id.
type usedID [16]byte

func newUsedID(key []byte, jti string) usedID {
	sum := sha256.Sum256(append(append(make([]byte, 0, len(key)+len(jti)), key...), jti...))
	return usedID(sum[:])
}

// usage is the result of an attempt to use a token.
type usage uint8

const (
	used usage = iota
	usedBefore
	noMemory
)

// use stores an id until a time.
func (s *usedIDs) use(id usedID, until, now time.Time) usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.next) > 0 && s.next[0].until < now.Unix() {
		delete(s.held, s.next[0].id)
		heap.Pop(&s.next)
	}
	if _, ok := s.held[id]; ok {
		return usedBefore
	}
	if len(s.held) >= maxUsedIDs {
		return noMemory
	}
	if s.held == nil {
		s.held = map[usedID]struct{}{}
	}
	s.held[id] = struct{}{}
	heap.Push(&s.next, expiry{id, until.Unix()})
	return used
}

// has reports whether an id is stored.
func (s *usedIDs) has(id usedID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.held[id]
	return ok
}

// size returns the number of stored ids.
func (s *usedIDs) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.held)
}

// expiry is the time at which an id may be removed.
type expiry struct {
	id    usedID
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
