package nats

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/netloop/netloop/cluster"
	"github.com/netloop/netloop/cluster/internal/answers"
	clusterv1 "github.com/netloop/netloop/proto/netloop/cluster/v1"
)

// outgoing is a call that waits for its answer. Callers of the same call share it.
type outgoing struct {
	to      string
	callers int
	done    chan struct{} // closed after answer is set
	answer  *clusterv1.Answer
}

// sendAgain is the interval at which a call without an answer is repeated.
const sendAgain = 500 * time.Millisecond

// Call implements cluster.Cluster.
func (c *Cluster) Call(ctx context.Context, call cluster.Call) ([]byte, error) {
	call, err := call.Complete(rand.Text)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, call.Timeout)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	out, until, err := c.register(call)
	if err != nil {
		return nil, err
	}
	defer c.unregister(call.ID, out)
	m := &clusterv1.Call{Id: call.ID, Method: call.Method, Body: call.Body, Until: int64(until), Timeout: int64(call.Timeout)}
	if call.To == c.id {
		c.onCall(c.id, m, c.now())
	}
	data := encode(&clusterv1.Direct{From: c.id, Content: &clusterv1.Direct_Call{Call: m}})
	again := time.NewTicker(min(sendAgain, c.cfg.Beat/2))
	defer again.Stop()
	for {
		if call.To != c.id {
			c.publish("to."+call.To, data)
		}
		select {
		case <-out.done:
			return out.answer.GetBody(), errorOf(out.answer)
		case <-ctx.Done():
			return nil, cluster.ErrBusy
		case <-again.C:
		}
	}
}

// register notes a call, and returns the uptime of the receiver at its end.
func (c *Cluster) register(call cluster.Call) (*outgoing, time.Duration, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.joined || c.closed {
		return nil, 0, cluster.ErrClosed
	}
	until := c.now() + call.Timeout
	if call.To != c.id {
		to := c.peers.all[call.To]
		if to == nil || !to.listed {
			return nil, 0, cluster.ErrGone
		}
		until = to.until(until)
	}
	out := c.calls[call.ID]
	if out == nil {
		if len(c.calls) >= cluster.MaxCalls {
			return nil, 0, cluster.ErrBusy
		}
		out = &outgoing{to: call.To, done: make(chan struct{})}
		c.calls[call.ID] = out
	}
	out.callers++
	return out, until, nil
}

func (c *Cluster) unregister(id string, out *outgoing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if out.callers--; out.callers == 0 && c.calls[id] == out {
		delete(c.calls, id)
	}
}

// onAnswer handles the answer of a call. The first one counts, and others are late.
func (c *Cluster) onAnswer(from string, a *clusterv1.Answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.calls[a.GetId()]
	if out == nil || out.to != from || out.answer != nil {
		return
	}
	out.answer = a
	close(out.done)
}

// onCall handles a call: a new one runs, and a known one is answered again.
func (c *Cluster) onCall(from string, m *clusterv1.Call, now time.Duration) {
	until := min(time.Duration(m.GetUntil()), now+time.Duration(m.GetTimeout()))
	e, outcome := c.log.Begin(m.GetId(), now, until)
	switch outcome {
	case answers.New:
		c.serve(from, m, e, until-now)
	case answers.Known:
		select {
		case <-e.Done:
			c.answer(from, m.GetId(), e.Answer)
		default: // It is answered when it has run.
		}
	case answers.Full:
		c.answer(from, m.GetId(), answers.Answer{Err: cluster.ErrBusy})
	case answers.Late: // Its caller has given up.
	}
}

// serve runs a call on a goroutine.
func (c *Cluster) serve(from string, m *clusterv1.Call, e *answers.Entry, timeout time.Duration) {
	finish := func(body []byte, err error) {
		body, err = cluster.Outcome(body, err)
		c.log.Finish(e, answers.Answer{Body: body, Err: err})
		c.answer(from, m.GetId(), e.Answer)
	}
	c.mu.Lock()
	h := c.handler
	if c.closed || c.serving >= cluster.MaxServing || h == nil {
		c.mu.Unlock()
		finish(nil, cluster.ErrBusy)
		return
	}
	c.serving++
	c.group.Add(1) // With the lock: Close waits for all that were added before.
	c.mu.Unlock()
	go func() {
		defer c.group.Done()
		ctx, cancel := context.WithTimeout(c.ctx, timeout)
		defer cancel()
		body, err := h(ctx, cluster.Request{From: from, Method: m.GetMethod(), Body: m.GetBody()})
		if ctx.Err() != nil {
			err = cluster.ErrBusy
		}
		finish(body, err)
		c.mu.Lock()
		c.serving--
		c.mu.Unlock()
	}()
}

// answer sends an answer.
func (c *Cluster) answer(to, id string, a answers.Answer) {
	m := answerOf(id, a.Body, a.Err)
	if to == c.id {
		c.onAnswer(c.id, m)
		return
	}
	c.send(to, &clusterv1.Direct{From: c.id, Content: &clusterv1.Direct_Answer{Answer: m}})
}
