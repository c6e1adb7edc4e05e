package transport

import (
	"context"

	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// Handler decides who comes in. The server's owner implements it.
type Handler interface {
	// Tables is asked first. It returns the frames of the server's tables, made by
	// AppendTables, if this client needs them, or nil if it has the same. Its error is
	// like that of Admit.
	Tables(hello *netloopv1.Hello) ([]byte, error)
	// Admit is asked once the client knows the tables. It runs on its own goroutine and
	// may block until ctx ends. An error that is a *Refusal reaches the peer in words;
	// any other is logged, and the peer reads "internal error".
	Admit(ctx context.Context, hello *netloopv1.Hello, remote string) (*Admission, error)
}

// Admission is what a driver needs of a client that was let in. Once a driver has it,
// it calls Joined exactly once, and the session ends with exactly one arrival Gone,
// even when the client vanished meanwhile: an owner never has to take a seat back.
type Admission struct {
	Welcome *netloopv1.Welcome
	Session SessionConfig
	// Joined is called before anything of the session is read. The owner pushes the
	// arrival Joined from it.
	Joined func(*Session)
	// Who is what the handler knows of the client that was admitted: when the client moves by a
	// ticket of the server, Who of the next admission's context returns it.
	Who any
}

// whoKey is where the context of an admission has what was known of who moves.
type whoKey struct{}

// WithWho returns a context for Handler.Admit of a client that moves: who is Admission.Who of the
// admission before.
func WithWho(ctx context.Context, who any) context.Context {
	return context.WithValue(ctx, whoKey{}, who)
}

// Who returns what was known of a client that moves, and nil for one that has just come.
func Who(ctx context.Context) any { return ctx.Value(whoKey{}) }

// approvedKey is where the context of an admission has what its driver does on approval.
type approvedKey struct{}

// WithApproved returns a context for Handler.Admit whose [Approved] calls fn.
func WithApproved(ctx context.Context, fn func()) context.Context {
	return context.WithValue(ctx, approvedKey{}, fn)
}

// Approved tells the driver that whoever is being admitted is no stranger any more, though its
// admission may take a while yet: it waits for its turn.
func Approved(ctx context.Context) {
	if fn, ok := ctx.Value(approvedKey{}).(func()); ok {
		fn()
	}
}
