package membership

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/netloop/netloop/cluster"
	"github.com/netloop/netloop/internal/transport"
	clusterv1 "github.com/netloop/netloop/proto/netloop/cluster/v1"
)

// handler runs a call of another server.
type handler func(ctx context.Context, from string, body []byte) ([]byte, error)

// Request is the message of a call: a pointer to a generated type.
type Request[T any] interface {
	*T
	proto.Message
}

// Handle sets the function for the calls of a method, before Join. Its context ends with the
// caller's time. A [*transport.Refusal] and the errors of package cluster reach the caller as they
// are, other errors as their text.
func Handle[Q any, P Request[Q]](m *Member, method string, fn func(ctx context.Context, from string, q P) (proto.Message, error)) {
	m.handlers[method] = func(ctx context.Context, from string, body []byte) ([]byte, error) {
		q := P(new(Q))
		if err := proto.Unmarshal(body, q); err != nil {
			return nil, fmt.Errorf("%s: malformed call: %w", method, err)
		}
		answer, err := fn(ctx, from, q)
		if err != nil {
			return nil, err
		}
		return proto.Marshal(answer)
	}
}

// serve runs a call. It implements [cluster.Handler].
func (m *Member) serve(ctx context.Context, r cluster.Request) ([]byte, error) {
	h := m.handlers[r.Method]
	if h == nil {
		return nil, fmt.Errorf("this server does not have the method %q: it has another version", r.Method)
	}
	body, err := h(ctx, r.From, r.Body)
	reply := &clusterv1.Reply{Body: body}
	if refused := (*transport.Refusal)(nil); errors.As(err, &refused) {
		reply.Code, reply.Text = int64(refused.Code), []byte(refused.Text)
	} else if err != nil {
		return nil, err
	}
	return proto.Marshal(reply)
}

// Call calls a method of a server, and stores the result in answer, unless that is nil. Without a
// deadline it takes at most [cluster.StoreTime]. The error is a [*transport.Refusal] or
// [cluster.ErrGone] of the other server, [cluster.ErrBusy] if it did not answer in time, or another
// error of its handler.
func (m *Member) Call(ctx context.Context, server, method string, q, answer proto.Message) error {
	if !m.joined.Load() {
		return cluster.ErrBusy
	}
	body, err := proto.Marshal(q)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	timeout := cluster.StoreTime
	if until, ok := ctx.Deadline(); ok {
		timeout = min(time.Until(until), cluster.MaxCallTime)
	}
	if timeout <= 0 {
		return cluster.ErrBusy
	}
	body, err = m.cfg.Via.Call(ctx, cluster.Call{To: server, Method: method, Body: body, Timeout: timeout})
	if err != nil {
		return err
	}
	var reply clusterv1.Reply
	if err := proto.Unmarshal(body, &reply); err != nil {
		return fmt.Errorf("%s: malformed answer: %w", method, err)
	}
	if c := reply.GetCode(); c != 0 {
		if c < 0 || c > math.MaxUint32 {
			return fmt.Errorf("%s: malformed answer: code %d", method, c)
		}
		return &transport.Refusal{Code: transport.Code(c), Text: string(reply.GetText())}
	}
	if answer == nil {
		return nil
	}
	if err := proto.Unmarshal(reply.GetBody(), answer); err != nil {
		return fmt.Errorf("%s: malformed answer: %w", method, err)
	}
	return nil
}
