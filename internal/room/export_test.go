package room

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/recording"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
)

// The exports for the tests of this package. They are outside of it, because they play whole games
// of package netloop.

const (
	FirstTick       = firstTick
	FloodPenalty    = floodPenalty
	FloodSpacing    = floodSpacing
	FloodWait       = floodWait
	MaxAsync        = maxAsync
	MaxDigests      = maxDigests
	MaxEntering     = maxEntering
	EnteringSlots   = enteringSlots
	FreeVisits      = freeVisits
	ShortVisit      = shortVisit
	VisitMemory     = visitMemory
	MaxVisitors     = maxVisitors
	MaxFollowed     = maxFollowed
	MaxFulls        = maxFulls
	MaxFloodWait    = maxFloodWait
	MaxPenalties    = maxPenalties
	MaxQuestions    = maxQuestions
	MaxPosts        = maxPosts
	MaxRefusals     = maxRefusals
	MaxUnsentAcks   = maxUnsentAcks
	MaxMails        = maxMails
	MaxMailBytes    = maxMailBytes
	MaxRoomMessages = maxRoomMessages
	MaxWaiting      = maxWaiting
	MaxFromRoom     = maxFromRoom
	MaxWatched      = maxWatched
	MaxPayload      = maxPayload
	KeptPayloads    = keptPayloads
	TickPayloads    = tickPayloads
	StallNames      = stallNames
)

var ErrLeftBehind = errLeftBehind

type (
	Result    = result
	Penalties = penalties
	Outgoing  = outgoing
	Posts     = posts
	Mailed    = mailed
)

// RoomMessageItem returns a message of another room, of the given size.
func RoomMessageItem(from string, size int) rpcqueue.Item {
	return rpcqueue.Item{Held: 1, Holds: &roomMessage{from: Sender{Room: from}, size: size}}
}

func (p *Posts) Add(it rpcqueue.Item) error       { return p.add(it) }
func (p *Posts) Take() []rpcqueue.Item            { return p.take() }
func (p *Posts) Close() []rpcqueue.Item           { return p.close() }
func (m *Mailed) Fits(tick uint64, size int) bool { return m.fits(tick, size) }

func OutcomeCode(o rpcqueue.Outcome) transport.Code { return outcomeCode(o) }

func (r *Room) DrainWith(p *loop.Pacer) error    { r.Supervisor.endCause(); return r.Shutdown.drain(p) }
func (r *Room) Inbox() *transport.Inbox          { return r.Admission.inbox }
func (r *Room) Penalties() *Penalties            { return &r.Admission.penalties }
func (r *Room) Queue() *rpcqueue.Queue[struct{}] { return r.Messages.queue }
func (r *Room) Observe(rec *loop.Record)         { r.Stats.observe(rec) }
func (r *Room) WatchedMethods() int              { return len(r.Messages.watched) }
func (r *Room) Report()                          { r.Stats.report() }
func (c *Commands) Waiting() bool                { return c.some() }

// Sessions returns the number of stored sessions.
func (r *Room) Sessions() int {
	return reflect.ValueOf(&r.Admission.seats).Elem().FieldByName("sessions").Len()
}

func (r *Room) WaitForWork()                   { r.Async.quiet(time.Minute) }
func (r *Room) Arrived() int                   { return r.arrived }
func (r *Room) SetDry()                        { r.cfg.Limits.Dry = true }
func (r *Room) SetMaxClients(n int)            { r.spec.MaxClients, r.Admission.seats.Playing.Most = n, n }
func (r *Room) SetSameSubject(p SameSubject)   { r.spec.SameSubject = p }
func (c *Client) Kicked() *transport.Closed    { return c.kicked }
func (c *Client) Unsent() uint64               { return c.unsent }
func (r *Room) Play(ctx context.Context) error { return r.run(ctx) }

// SendPeriod returns the time between two snapshots in a client's window.
func (c *Client) SendPeriod() time.Duration {
	return time.Duration(reflect.ValueOf(c.window).Elem().FieldByName("period").Int())
}

func (r *Room) ReportEvery() uint64       { return r.Stats.every() }
func (r *Room) Paced(in loop.Input) error { return r.paced(in) }
func (r *Room) Sent() *Outgoing           { return r.sent }

// StepDue returns when a step is due in an epoch.
func (r *Room) StepDue(step uint64, e loop.Epoch) time.Duration {
	r.in.Epoch = e
	return r.Inputs.stepDue(step)
}

// Recorded names the data of the last tick that a room's recorder still refers to.
func (r *Room) Recorded() string {
	f, ok := r.source.(*recorder)
	if !ok {
		return ""
	}
	t := &f.tick
	for _, a := range t.Arrivals[:cap(t.Arrivals)] {
		if !reflect.DeepEqual(a, recording.Arrival{}) {
			return fmt.Sprintf("the arrival %+v", a)
		}
	}
	for _, p := range t.Posts[:cap(t.Posts)] {
		if p.Msg != nil {
			return fmt.Sprintf("the post %+v", p)
		}
	}
	for _, res := range t.Results[:cap(t.Results)] {
		if res.Value != nil {
			return fmt.Sprintf("the result %+v", res)
		}
	}
	return ""
}

func (o *outgoing) Stop()                                          { o.stop() }
func (o *outgoing) Take() uint64                                   { return o.take() }
func (o *outgoing) Message(id uint64, m transport.Message)         { o.sender(id)(m) }
func (o *outgoing) Packets(id uint64, packets [][]byte)            { o.packets(id, packets) }
func (o *outgoing) Record(id uint64, record []byte)                { o.record(id, record) }
func (o *outgoing) Closed(id uint64, why *transport.Closed)        { o.closed(id, why) }
func (o *outgoing) TimeScale(s transport.TimeScale)                { o.timeScale(s) }
func (o *outgoing) InputStatus(id uint64, s transport.InputStatus) { o.inputStatus(id, &s) }

func (p *penalties) Add(holder string, now time.Duration) { p.add(holder, now) }
func (p *penalties) Turn(h rpcqueue.Holder, now time.Duration) (time.Duration, bool) {
	return p.turn(h, now)
}
func (p *penalties) Dropped() uint64             { return p.dropped() }
func (p *penalties) Held() (byHolder, order int) { return len(p.byHolder), len(p.order) }

// PollAndDrain runs the parts of a tick that take messages from the inbox to their handlers.
func (r *Room) PollAndDrain(tick uint64, gameTime time.Duration, s loop.Stage) {
	r.Messages.queue.Begin(tick, gameTime)
	r.now.Tick, r.now.Stage = tick, loop.EarlyUpdate
	r.poll()
	r.now.Stage = s
	r.Messages.queue.Drain(s, struct{}{})
	r.now.Stage = 0
}

// WaitingQuestions returns how many questions wait for an answer.
func (r *Room) WaitingQuestions() int {
	r.Questions.mu.Lock()
	defer r.Questions.mu.Unlock()
	return len(r.Questions.waiting)
}

// SetDelayBuffer limits the bytes of the room's delay buffer.
func (r *Room) SetDelayBuffer(most int) { r.feed.buffer.most = most }

// DelayBuffer returns the bytes in the delay buffer.
func (r *Room) DelayBuffer() int { return r.feed.size() }

// Schema returns the schema that the room's game has declared.
func (r *Room) Schema() *schema.Schema { return r.schema }

// AnswerQuestions answers the waiting questions, as the end of a tick does.
func (r *Room) AnswerQuestions() { r.Questions.answer(0) }

// SetTravel lets the clients of a room move to other servers, before its first tick.
func (r *Room) SetTravel(t Travel) { r.spec.Travels, r.cfg.Travel = true, t }

// SetKeepDropped sets the time for which seats are kept.
func (r *Room) SetKeepDropped(d time.Duration) { r.spec.KeepDropped = d }

// TravelKeep is the least time for which the seat of a client is kept that moves elsewhere.
const TravelKeep = travelKeep
