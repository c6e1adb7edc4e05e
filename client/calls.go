package client

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/transport"
)

// calls holds the calls that wait for an answer. Only Step's goroutine uses it.
type calls struct {
	last    uint64        // id of the newest call
	waiting []waitingCall // by id
	refused int           // number of calls refused since the last poll, because too many wait
	late    uint64        // number of answers to calls that no longer waited
}

type waitingCall struct {
	id       uint64
	method   uint32 // the called method
	deadline time.Duration
	then     func(t *netloop.Tick, answer any, err error)
}

// maxCalls is the maximum number of calls that wait for answers: more than a player can make. It is
// also the maximum number of calls that are refused in one frame because too many wait.
const maxCalls = 1024

// ErrTimeout is the error of a call that was not answered within its
// [netloop.Timeout].
var ErrTimeout = errors.New("client: the call was not answered in time")

// ErrTooManyCalls is the error of a call that was not sent because 1 024 calls wait for their
// answers.
var ErrTooManyCalls = errors.New("client: too many calls wait for their answers")

// add registers a call and returns its id.
func (cs *calls) add(method uint32, now, timeout time.Duration, then func(*netloop.Tick, any, error)) uint64 {
	cs.last++
	cs.waiting = append(cs.waiting, waitingCall{cs.last, method, now + timeout, then})
	return cs.last
}

// take removes a waiting call.
func (cs *calls) take(id uint64) (call waitingCall, ok bool) {
	i, ok := cs.find(id)
	if ok {
		call = cs.waiting[i]
		cs.waiting = slices.Delete(cs.waiting, i, i+1)
	}
	return call, ok
}

// find returns the index of a waiting call.
func (cs *calls) find(id uint64) (i int, ok bool) {
	return slices.BinarySearchFunc(cs.waiting, id, func(w waitingCall, id uint64) int { return cmp.Compare(w.id, id) })
}

// answer delivers an answer to its call. An answer is dropped and counted if its call no longer
// waits, or called another method.
func (cs *calls) answer(t *netloop.Tick, m *transport.Message, decoded any) {
	i, ok := cs.find(m.Call)
	if !ok || cs.waiting[i].method != m.Method {
		cs.late++
		return
	}
	call, _ := cs.take(m.Call)
	if m.Code != 0 {
		call.then(t, nil, &netloop.Refusal{Code: transport.Code(m.Code), Text: m.Text})
		return
	}
	call.then(t, decoded, nil)
}

// fail fails one call, if it still waits.
func (cs *calls) fail(t *netloop.Tick, id uint64, err error) {
	if call, ok := cs.take(id); ok {
		call.then(t, nil, err)
	}
}

// expire fails calls past their deadline, oldest first.
func (cs *calls) expire(t *netloop.Tick, now time.Duration) {
	cs.refused = 0
	for {
		i := slices.IndexFunc(cs.waiting, func(w waitingCall) bool { return now >= w.deadline })
		if i < 0 {
			return
		}
		cs.fail(t, cs.waiting[i].id, ErrTimeout) // Its callback may make a new call, which is last.
	}
}

// failAll fails all waiting calls, oldest first, except new calls that their callbacks make: a game
// that calls again each time would never finish.
func (cs *calls) failAll(t *netloop.Tick, err error) {
	waiting := cs.waiting
	cs.waiting = nil
	for i := range waiting {
		waiting[i].then(t, nil, err)
	}
}
