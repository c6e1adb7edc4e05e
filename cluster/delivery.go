package cluster

import (
	"context"
	"slices"
	"time"

	"github.com/netloop/netloop/cluster/internal/answers"
)

// delivery is a call on its way to a member of a Memory.
type delivery struct {
	from    *member
	call    Call
	until   time.Duration
	arrived chan *answers.Entry // size 1, for the one result: nil means ErrBusy
}

// Call implements Cluster. The handler of a member that can be reached runs on this goroutine.
func (m *member) Call(ctx context.Context, c Call) (body []byte, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d := &delivery{from: m, arrived: make(chan *answers.Entry, 1)}
	m.hub.do(func(now time.Duration) {
		if m.closed || !m.joined {
			err = ErrClosed
			return
		}
		if d.call, err = c.Complete(m.newIDLocked); err != nil {
			return
		}
		d.until = now + d.call.Timeout
		to := m.hub.memberLocked(d.call.To)
		if to == nil || to.closed {
			err = ErrGone
			return
		}
		if len(to.waiting) >= MaxCalls {
			err = ErrBusy
			return
		}
		to.waiting = append(to.waiting, d)
		to.takeLocked(now)
	})
	if err != nil {
		return nil, err
	}
	select {
	case e := <-d.arrived:
		if e == nil {
			return nil, ErrBusy
		}
		select {
		case <-e.Done:
			return e.Answer.Body, e.Answer.Err
		case <-ctx.Done():
		}
	case <-ctx.Done():
	}
	return nil, ErrBusy
}

func (h *Memory) memberLocked(id string) (found *member) {
	h.eachLocked(id, func(m *member) { found = m })
	return found
}

// takeLocked takes the calls that arrive, and drops those that are late.
func (m *member) takeLocked(now time.Duration) {
	m.waiting = slices.DeleteFunc(m.waiting, func(d *delivery) bool {
		if !m.hearsLocked(d.from) || m.frozen {
			return false
		}
		e, outcome := m.log.Begin(d.call.ID, now, d.until)
		if outcome == answers.New {
			m.runLocked(e, d)
		}
		d.arrived <- e
		return true
	})
}

// runLocked lets a new call run as soon as the lock is free.
func (m *member) runLocked(e *answers.Entry, d *delivery) {
	if m.handler == nil || m.serving >= MaxServing {
		m.log.Finish(e, answers.Answer{Err: ErrBusy})
		return
	}
	m.serving++
	handler := m.handler
	m.hub.due = append(m.hub.due, func() {
		ctx, cancel := context.WithTimeout(context.Background(), d.call.Timeout)
		defer cancel()
		body, err := Outcome(handler(ctx, Request{From: d.from.self.Server.ID, Method: d.call.Method, Body: d.call.Body}))
		if ctx.Err() != nil {
			body, err = nil, ErrBusy
		}
		m.log.Finish(e, answers.Answer{Body: body, Err: err})
		m.hub.mu.Lock()
		m.serving--
		m.hub.mu.Unlock()
	})
}

// expireLocked ends calls to the member that have not arrived in time.
func (m *member) expireLocked(now time.Duration) {
	m.waiting = slices.DeleteFunc(m.waiting, func(d *delivery) bool {
		if now < d.until {
			return false
		}
		d.arrived <- nil
		return true
	})
}

// endCallsLocked ends the calls to a member that leaves.
func (m *member) endCallsLocked() {
	for _, d := range m.waiting {
		d.arrived <- nil
	}
	m.waiting = nil
}
