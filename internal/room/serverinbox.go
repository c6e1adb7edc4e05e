package room

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/transport"
)

// ServerInbox holds the messages of rooms to the program that runs the server. Any goroutine may
// use it, but only one at a time calls Deliver or Serve.
type ServerInbox struct {
	posts posts
	rest  []rpcqueue.Item // taken and not yet delivered; belongs to the delivering goroutine
	woken chan struct{}   // size 1: signals that a message waits

	mu       sync.Mutex
	handlers map[*rpcqueue.Method]ServerHandler
	open     bool // delivery has begun: no handler may be added
}

// ServerHandler handles a message of a room.
type ServerHandler func(ctx context.Context, from *Sender, msg any) error

// NewServerInbox returns an inbox without handlers.
func NewServerInbox() *ServerInbox {
	return &ServerInbox{woken: make(chan struct{}, 1), handlers: map[*rpcqueue.Method]ServerHandler{}}
}

// Handle sets the function for messages of a method. fn must not panic.
func (d *ServerInbox) Handle(m *rpcqueue.Method, fn ServerHandler) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case fn == nil:
		return errors.New("it needs a function")
	case d.open:
		return errors.New("the server runs already")
	case d.handlers[m] != nil:
		return fmt.Errorf("method %q has a handler already", m.Name)
	}
	d.handlers[m] = fn
	return nil
}

func (d *ServerInbox) handler(m *rpcqueue.Method) ServerHandler {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.handlers[m]
}

// Receive queues a message of a room. The error is a refusal if no handler is set for its method,
// and ErrFull if too many messages wait.
func (d *ServerInbox) Receive(it rpcqueue.Item) error {
	if d.handler(it.Method) == nil {
		return transport.Refuse(transport.CodeUnknownMethod, "the program does not handle %s", it.Method.Name)
	}
	if err := d.posts.add(it); err != nil {
		return err
	}
	select {
	case d.woken <- struct{}{}:
	default: // A wake-up is already pending.
	}
	return nil
}

// Deliver runs the handlers of all waiting messages, and returns when none is left.
func (d *ServerInbox) Deliver(ctx context.Context) {
	for {
		if len(d.rest) == 0 {
			d.rest = d.posts.take()
		}
		if len(d.rest) == 0 {
			return
		}
		it := d.rest[0]
		d.rest = d.rest[1:]
		d.deliver(ctx, &it)
	}
}

// deliver runs the handler of one message. The message is settled even if the handler ends its
// goroutine.
func (d *ServerInbox) deliver(ctx context.Context, it *rpcqueue.Item) {
	defer roomMessageOf(it).settled(nil)
	_ = d.handler(it.Method)(ctx, SenderOf(it), it.Msg) // The handler itself reports its error.
}

// Open begins the delivery: from now on no handler can be added.
func (d *ServerInbox) Open() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open = true
}

// Serve delivers until stop is closed, and then the remaining messages; ctx is passed to the
// handlers.
func (d *ServerInbox) Serve(ctx context.Context, stop <-chan struct{}) {
	d.Deliver(ctx) // The goroutine that called Deliver before may have left messages.
	for {
		select {
		case <-d.woken:
			d.Deliver(ctx)
		case <-stop:
			d.Deliver(ctx)
			return
		}
	}
}
