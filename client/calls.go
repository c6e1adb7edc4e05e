package client

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/transport"
)

// calls are the questions that wait for an answer. They belong to Step's
// goroutine.
type calls struct {
	last    uint64        // id of the newest
	waiting []waitingCall // by id
	refused int           // since the last poll, because too many wait
	late    uint64        // answers that nobody waited for any more
}

type waitingCall struct {
	id       uint64
	method   uint32 // that it asks
	deadline time.Duration
	then     func(t *netloop.Tick, answer any, err error)
}

// maxCalls is how many questions may wait for their answers: more than a player
// can ask. It also bounds those that are refused for it in one frame.
const maxCalls = 1024

// ErrTimeout is the error of a call that was not answered within its
// [netloop.Timeout].
var ErrTimeout = errors.New("client: the call was not answered in time")

// ErrTooManyCalls is the error of a call that was not asked because 1 024 wait
// for their answers.
var ErrTooManyCalls = errors.New("client: too many calls wait for their answers")

// add notes a call and returns its id.
func (cs *calls) add(method uint32, now, timeout time.Duration, then func(*netloop.Tick, any, error)) uint64 {
	cs.last++
	cs.waiting = append(cs.waiting, waitingCall{cs.last, method, now + timeout, then})
	return cs.last
}

// take removes a call that waits.
func (cs *calls) take(id uint64) (call waitingCall, ok bool) {
	i, ok := cs.find(id)
	if ok {
		call = cs.waiting[i]
		cs.waiting = slices.Delete(cs.waiting, i, i+1)
	}
	return call, ok
}

// find returns where a call waits.
func (cs *calls) find(id uint64) (i int, ok bool) {
	return slices.BinarySearchFunc(cs.waiting, id, func(w waitingCall, id uint64) int { return cmp.Compare(w.id, id) })
}

// answer hands an answer to who asked. One that nobody waits for any more is
// dropped and counted, and so is one of another method than the call asked.
func (cs *calls) answer(t *netloop.Tick, m *transport.Message, decoded any) {
	i, ok := cs.find(m.Call)
	if !ok || cs.waiting[i].method != m.Method {
		cs.late++
		return
	}
	call := cs.waiting[i]
	cs.waiting = slices.Delete(cs.waiting, i, i+1)
	switch {
	case m.Code != 0:
		call.then(t, nil, &netloop.Refusal{Code: transport.Code(m.Code), Text: m.Text})
	default:
		call.then(t, decoded, nil)
	}
}

// fail fails one call, if it still waits.
func (cs *calls) fail(t *netloop.Tick, id uint64, err error) {
	if call, ok := cs.take(id); ok {
		call.then(t, nil, err)
	}
}

// expire fails what has waited too long, oldest first.
func (cs *calls) expire(t *netloop.Tick, now time.Duration) {
	cs.refused = 0
	for {
		i := slices.IndexFunc(cs.waiting, func(w waitingCall) bool { return now >= w.deadline })
		if i < 0 {
			return
		}
		cs.fail(t, cs.waiting[i].id, ErrTimeout) // It may ask again, behind all others.
	}
}

// failAll fails everything that waits, oldest first. What its callbacks ask again is
// not among it: a game that does so each time would never come to an end.
func (cs *calls) failAll(t *netloop.Tick, err error) {
	waiting := cs.waiting
	cs.waiting = nil
	for i := range waiting {
		waiting[i].then(t, nil, err)
	}
}
