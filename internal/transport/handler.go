package transport

import (
	"context"

	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// Handler admits clients. The server's owner implements it.
type Handler interface {
	// Tables is called first. It returns the frames of the server's tables, made by AppendTables,
	// if the client's tables differ, or nil. Its error is handled like an error of Admit.
	Tables(hello *netloopv1.Hello) ([]byte, error)
	// Admit is called once the client has the tables. It runs on its own goroutine and may block
	// until ctx ends. The text of a *Refusal is sent to the peer; any other error is logged, and
	// the peer gets "internal error".
	Admit(ctx context.Context, hello *netloopv1.Hello, remote string) (*Admitted, error)
}

// Admitted is the result of an admission: the welcome and the session of the client. A driver that
// gets an Admitted calls Joined exactly once, and the session ends with exactly one arrival Gone,
// even if the client has vanished meanwhile. So the owner can free a seat at Gone.
type Admitted struct {
	Welcome *netloopv1.Welcome
	Session SessionConfig
	// Joined is called before any bytes of the session are read. In it the owner pushes the arrival
	// Joined.
	Joined func(*Session)
	// Who is the handler's data of the admitted client. If the client moves by a ticket of the
	// server, the function Who returns it from the context of the next admission.
	Who any
}

// whoKey is the context key under which WithWho stores Admitted.Who of a client that moves to
// another room.
type whoKey struct{}

// WithWho returns a context for Handler.Admit of a moving client: who is Admitted.Who of its
// previous admission.
func WithWho(ctx context.Context, who any) context.Context {
	return context.WithValue(ctx, whoKey{}, who)
}

// Who returns Admitted.Who of a moving client, and nil for a new client.
func Who(ctx context.Context) any { return ctx.Value(whoKey{}) }

// approvedKey is the context key of the function that Approved calls.
type approvedKey struct{}

// WithApproved returns a context for Handler.Admit in which [Approved] calls fn.
func WithApproved(ctx context.Context, fn func()) context.Context {
	return context.WithValue(ctx, approvedKey{}, fn)
}

// Approved tells the driver that the client counts as admitted, although Handler.Admit may still
// wait in a queue of joining clients.
func Approved(ctx context.Context) {
	if fn, ok := ctx.Value(approvedKey{}).(func()); ok {
		fn()
	}
}
