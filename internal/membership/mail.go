package membership

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/netloop/netloop/cluster"
	"github.com/netloop/netloop/internal/transport"
	clusterv1 "github.com/netloop/netloop/proto/netloop/cluster/v1"
)

// Messages between rooms of two servers travel in numbered batches:
//
//	Send ─▶ find the room's server ─▶ outbox of that server ─▶ call "mail" ─▶ order ─▶ handlers
//	Done ◀───────────────────────────── outcomes ◀──────────────── all of them, or the time ends
//
// The calls of several batches run at once. The receiver queues the messages of the batches in the
// order of their numbers. A batch that is missing for longer than orderTime is skipped: it is
// refused if it arrives later.

const (
	maxBatch      = 256             // messages: their outcomes fit into an answer
	maxBatchBytes = 60 << 10        // below cluster.MaxBody, with the head of the batch
	maxBatches    = 16              // calls that run at once to one server
	maxQueued     = 4096            // messages that wait for the calls to one server
	maxFromRoom   = 1024            // the same, of one room: all that a room sends in a tick
	maxQueuedSize = 4 << 20         // bytes of the messages that wait for the calls to one server
	maxMailBytes  = 32 << 20        // bytes of all messages that wait or travel
	maxLookups    = 256             // names of rooms whose server is being looked up
	maxText       = 128             // bytes of the text of an outcome
	orderTime     = 2 * time.Second // time for which a batch waits for earlier ones
	envelope      = 64              // bytes of a message besides its names and its payload, at most
	idleSenders   = 1024            // remembered servers; above this limit idle ones are forgotten
)

// Mail is a message to a room of another server.
type Mail struct {
	*clusterv1.RoomMessage
	// Done is called once with the outcome, on any goroutine: nil if the handler has returned, a
	// [*transport.Refusal], or ErrNoAnswer. It must not wait.
	Done func(error)
}

func (m *Mail) size() int {
	return len(m.GetTo()) + len(m.GetFrom()) + len(m.GetKind()) + len(m.GetMethod()) + len(m.GetPayload()) + envelope
}

// ErrNoAnswer is the outcome of a message if the other server has not answered in time. The handler
// may have run.
var ErrNoAnswer = errors.New("the server of the room does not answer")

var (
	errNoRoom  = transport.Refuse(transport.CodeRoomUnknown, "the room does not exist, or has ended before it read the message")
	errMuch    = transport.Refuse(transport.CodeBusy, "too many messages wait for the server of the room")
	errSkipped = transport.Refuse(transport.CodeBusy, "the message was overtaken by later ones")
)

// mail has the messages that this server sends, and the order of those that it receives.
type mail struct {
	m      *Member
	ctx    context.Context //nolint:containedctx // Ends with the Member.
	cancel context.CancelFunc
	calls  sync.WaitGroup

	mu      sync.Mutex
	bytes   int
	lookups map[string][]Mail // messages to rooms that are being looked up
	boxes   map[string]*outbox
	senders map[string]*sender
	closed  bool
}

// outbox has the messages to one server. The mutex of mail guards it.
type outbox struct {
	queue   []Mail
	size    int
	from    map[string]int // messages in the queue by sending room
	number  uint64         // of the newest batch
	running []uint64       // numbers of the batches without an answer, in rising order
	begins  bool           // a goroutine is about to take the next batch
}

// Send sends a message to a room that may be on another server. It does not wait.
func (m *Member) Send(l Mail) {
	if err := m.mail.send(l); err != nil {
		l.Done(err)
	}
}

func (x *mail) send(l Mail) error {
	if !x.m.joined.Load() {
		return errNoRoom
	}
	room := string(l.GetTo())
	server, known := x.m.Where(room)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed || x.bytes+l.size() > maxMailBytes {
		return errMuch
	}
	waiting, looking := x.lookups[room]
	switch {
	case looking && len(waiting) >= maxFromRoom, !looking && !known && len(x.lookups) >= maxLookups:
		return errMuch
	case looking: // It must not overtake the messages before it.
		x.lookups[room] = append(waiting, l)
	case known:
		return x.queueLocked(server, l)
	default:
		x.lookups[room] = []Mail{l}
		x.calls.Go(func() { x.lookup(room) })
	}
	x.bytes += l.size()
	return nil
}

// lookup finds the server of a room, and passes the messages on that wait for it.
func (x *mail) lookup(room string) {
	server, err := x.m.Find(x.ctx, room)
	x.mu.Lock()
	waiting := x.lookups[room]
	delete(x.lookups, room)
	refused := make([]error, len(waiting))
	for i := range waiting {
		x.bytes -= waiting[i].size()
		if refused[i] = outcomeOf(err); err == nil {
			refused[i] = x.queueLocked(server, waiting[i])
		}
	}
	x.mu.Unlock()
	for i, err := range refused {
		if err != nil {
			waiting[i].Done(err)
		}
	}
}

// outcomeOf returns the outcome of messages for an error of the cluster.
func outcomeOf(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, cluster.ErrGone):
		return errNoRoom
	}
	return ErrNoAnswer
}

// queueLocked queues a message for a server.
func (x *mail) queueLocked(server string, l Mail) error {
	b := x.boxes[server]
	if b == nil {
		b = &outbox{from: map[string]int{}}
		x.boxes[server] = b
	}
	from := string(l.GetFrom())
	if len(b.queue) >= maxQueued || b.from[from] >= maxFromRoom || b.size+l.size() > maxQueuedSize {
		return errMuch
	}
	b.queue = append(b.queue, l)
	b.from[from]++
	b.size += l.size()
	x.bytes += l.size()
	x.callLocked(server, b)
	return nil
}

// callLocked starts the call of the next batch. Messages that are queued before it takes its batch
// travel together.
func (x *mail) callLocked(server string, b *outbox) {
	if b.begins || len(b.queue) == 0 || len(b.running) >= maxBatches {
		return
	}
	b.begins = true
	x.calls.Go(func() { x.call(server, b) })
}

// call sends one batch, and reports the outcomes.
func (x *mail) call(server string, b *outbox) {
	x.mu.Lock()
	batch, q := b.takeLocked()
	b.begins = false
	x.callLocked(server, b)
	x.mu.Unlock()

	q.Schema = []byte(x.m.self.Schema)
	ctx, cancel := context.WithTimeout(x.ctx, cluster.StoreTime)
	var answer clusterv1.RoomOutcomes
	err := x.m.Call(ctx, server, "mail", q, &answer)
	cancel()

	x.mu.Lock()
	for i := range batch {
		x.bytes -= batch[i].size()
	}
	b.running = slices.DeleteFunc(b.running, func(n uint64) bool { return n == q.GetNumber() })
	x.callLocked(server, b)
	if len(b.queue)+len(b.running) == 0 && !b.begins && errors.Is(err, cluster.ErrGone) {
		delete(x.boxes, server)
	}
	x.mu.Unlock()
	for i := range batch {
		batch[i].Done(outcomeAt(&answer, i, len(batch), err))
	}
}

// takeLocked takes the messages of the next batch.
func (b *outbox) takeLocked() ([]Mail, *clusterv1.RoomMail) {
	size, n := 0, 0
	for n < len(b.queue) && n < maxBatch && (n == 0 || size+b.queue[n].size() <= maxBatchBytes) {
		size += b.queue[n].size()
		n++
	}
	batch := b.queue[:n:n]
	b.queue = b.queue[n:]
	b.size -= size
	b.number++
	b.running = append(b.running, b.number)
	q := &clusterv1.RoomMail{Number: b.number, First: b.running[0]}
	for _, l := range batch {
		q.Messages = append(q.Messages, l.RoomMessage)
		from := string(l.GetFrom())
		if b.from[from]--; b.from[from] == 0 {
			delete(b.from, from)
		}
	}
	return batch, q
}

// outcomeAt returns the outcome of message i of a batch.
func outcomeAt(a *clusterv1.RoomOutcomes, i, n int, err error) error {
	var refused *transport.Refusal
	switch {
	case errors.As(err, &refused):
		return refused
	case err != nil:
		return outcomeOf(err)
	case len(a.GetOutcomes()) != n:
		return ErrNoAnswer
	}
	o := a.GetOutcomes()[i]
	if o.GetCode() == 0 {
		return nil
	}
	return &transport.Refusal{Code: transport.Code(o.GetCode()), Text: string(o.GetText())}
}

// HandleMail sets the function for messages to rooms of this server, before Join. Each message's
// Done must be called once, and the function must not wait.
func (m *Member) HandleMail(fn func(Mail)) {
	Handle(m, "mail", func(ctx context.Context, from string, q *clusterv1.RoomMail) (proto.Message, error) {
		return m.mail.received(ctx, from, q, fn)
	})
}

// received queues the messages of a batch in its turn, and waits for their outcomes.
func (x *mail) received(ctx context.Context, from string, q *clusterv1.RoomMail, fn func(Mail)) (proto.Message, error) {
	if string(q.GetSchema()) != x.m.self.Schema {
		return nil, transport.Refuse(transport.CodeUnknownMethod, "the server of the room has another version of the schema")
	}
	c := &collected{outcomes: make([]*clusterv1.RoomOutcome, len(q.GetMessages())), left: len(q.GetMessages()), all: make(chan struct{})}
	queued := x.inOrder(ctx, from, q.GetNumber(), q.GetFirst(), func() {
		for i, msg := range q.GetMessages() {
			fn(Mail{RoomMessage: msg, Done: func(err error) { c.set(i, err) }})
		}
	})
	if !queued {
		return nil, errSkipped
	}
	within, cancel := context.WithTimeout(ctx, mostOf(ctx))
	defer cancel()
	select {
	case <-c.all:
	case <-within.Done():
	}
	return c.take(), nil
}

// mostOf returns the time after which a batch is answered without the outcomes that are missing
// then, so that the answer is in time.
func mostOf(ctx context.Context) time.Duration {
	until, ok := ctx.Deadline()
	if !ok {
		return cluster.StoreTime
	}
	return time.Until(until) * 9 / 10
}

// collected has the outcomes of a received batch.
type collected struct {
	mu       sync.Mutex
	outcomes []*clusterv1.RoomOutcome // nil: not yet
	left     int
	all      chan struct{} // closed with the last outcome
	taken    bool
}

func (c *collected) set(i int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.taken || c.outcomes[i] != nil {
		return
	}
	c.outcomes[i] = outcomeMessage(err)
	if c.left--; c.left == 0 {
		close(c.all)
	}
}

// take returns the outcomes; those that are missing are ErrNoAnswer.
func (c *collected) take() *clusterv1.RoomOutcomes {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.taken = true
	for i, o := range c.outcomes {
		if o == nil {
			c.outcomes[i] = outcomeMessage(ErrNoAnswer)
		}
	}
	return &clusterv1.RoomOutcomes{Outcomes: c.outcomes}
}

func outcomeMessage(err error) *clusterv1.RoomOutcome {
	if err == nil {
		return &clusterv1.RoomOutcome{}
	}
	refused := &transport.Refusal{Code: transport.CodeBusy, Text: err.Error()}
	errors.As(err, &refused)
	return &clusterv1.RoomOutcome{Code: int64(refused.Code), Text: []byte(refused.Text[:min(len(refused.Text), maxText)])}
}

// sender is the order of the batches of one server.
type sender struct {
	users int // batches that wait or are being queued; under the mutex of mail

	mu      sync.Mutex
	next    uint64        // number of the next batch
	waiting []uint64      // numbers of the batches that wait for their turn
	changed chan struct{} // closed at the next change
}

// inOrder calls fn in the turn of a batch. It reports false for a batch that was skipped, and if
// ctx ends before.
func (x *mail) inOrder(ctx context.Context, from string, number, first uint64, fn func()) bool {
	s := x.sender(from)
	defer x.leave(s)
	wait, cancel := context.WithTimeout(ctx, orderTime)
	defer cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	if first > s.next && first <= number {
		s.next = first
	}
	s.waiting = append(s.waiting, number)
	defer func() {
		s.waiting = slices.DeleteFunc(s.waiting, func(n uint64) bool { return n == number })
		close(s.changed)
		s.changed = make(chan struct{})
	}()
	for ended := wait.Done(); s.next < number; {
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ended:
			ended = ctx.Done()
		}
		s.mu.Lock()
		if ctx.Err() != nil {
			return false
		}
		if wait.Err() != nil && slices.Min(s.waiting) == number {
			break
		}
	}
	if number < s.next {
		return false
	}
	fn()
	s.next = number + 1
	return true
}

// sender returns the order of a server, which leave releases.
func (x *mail) sender(from string) *sender {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.senders[from]
	if s == nil {
		// The next batch of a forgotten server tells its first number.
		if len(x.senders) >= idleSenders {
			maps.DeleteFunc(x.senders, func(_ string, other *sender) bool { return other.users == 0 })
		}
		s = &sender{next: 1, changed: make(chan struct{})}
		x.senders[from] = s
	}
	s.users++
	return s
}

func (x *mail) leave(s *sender) {
	x.mu.Lock()
	defer x.mu.Unlock()
	s.users--
}

// close ends all calls.
func (x *mail) close() {
	x.mu.Lock()
	x.closed = true
	x.mu.Unlock()
	x.cancel()
}
