package room

import (
	"encoding/json"
	"time"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
)

const (
	// maxWatched limits the watched methods of a room.
	maxWatched = 16
	// keptPayloads is the number of payloads that are kept of a watched method, and maxPayload the
	// size of each as JSON, in bytes.
	keptPayloads = 16
	maxPayload   = 2 << 10
	// tickPayloads limits the payloads of a method that a tick converts to JSON: some 10 µs each.
	tickPayloads = 4
	// watchTime is the time without a question after which payloads are no longer kept.
	watchTime = 5 * time.Second
)

// Payload is a message of a watched method.
type Payload struct {
	Tick   uint64 `json:"tick"`   // in which it arrived
	Client uint64 `json:"client"` // that has sent it; 0: the server
	Stage  string `json:"stage"`  // that the sender has named; empty: the method's default
	// Outcome has the values of the label outcome of netloop_rpcs_total; a message that waits for
	// its stage is accepted or late. A message of the server is sent.
	Outcome string `json:"outcome"`
	// Value is the message as JSON, or null if it was refused before it was decoded. If the JSON
	// is longer than maxPayload, Value is a string with its beginning, and Cut is the number of
	// the other bytes.
	Value json.RawMessage `json:"value"`
	Cut   int             `json:"cut"` // bytes left out of value

	msg any // until the outcome is known
}

// payloadWatch keeps the last payloads of one method while somebody asks for them.
type payloadWatch struct {
	method *schema.Method
	until  uint64                // tick
	count  uint64                // of all kept payloads
	last   [keptPayloads]Payload // by count
	tick   uint64                // of the newest payload
	inTick int                   // payloads of that tick
}

// WatchPayloads returns the last payloads of a method, the newest first, and keeps further ones for
// watchTime. Without such a question no payload is kept, or looked at. It returns false if
// maxWatched other methods are watched. It is a question: see Questions.
func (q *Messages) WatchPayloads(m *schema.Method) (list []Payload, ok bool) {
	w := q.watched[m.Queue.ID]
	if w == nil {
		if len(q.watched) >= maxWatched {
			return nil, false
		}
		if q.watched == nil {
			q.watched = map[uint32]*payloadWatch{}
		}
		w = &payloadWatch{method: m}
		q.watched[m.Queue.ID] = w
	}
	w.until = q.now.Tick + q.spec.ticksAfter(watchTime)
	for i := range min(w.count, keptPayloads) {
		list = append(list, w.last[(w.count-1-i)%keptPayloads])
	}
	return list, true
}

// expireWatches ends the watches that nobody asks for.
func (q *Messages) expireWatches() {
	for id, w := range q.watched {
		if q.now.Tick > w.until {
			delete(q.watched, id)
		}
	}
}

// addPayload keeps a payload, unless the tick has enough of the method.
func (q *Messages) addPayload(w *payloadWatch, p Payload, encoded []byte) {
	if w.tick != q.now.Tick {
		w.tick, w.inTick = q.now.Tick, 0
	}
	if w.inTick++; w.inTick > tickPayloads {
		return
	}
	began := q.clock.Now()
	p.Tick = q.now.Tick
	if p.Value = []byte("null"); encoded != nil {
		if text, err := w.method.In.JSON(encoded); err == nil {
			p.Value = text
		}
	}
	if p.Cut = max(0, len(p.Value)-maxPayload); p.Cut > 0 {
		p.Value, _ = json.Marshal(string(p.Value[:maxPayload])) // A string can be encoded.
	}
	w.last[w.count%keptPayloads] = p
	w.count++
	q.metrics.Inspect.Add(uint64(q.clock.Now() - began))
}

// arrivedPayload keeps a client's message of a watched method, with the outcome of its queue.
func (q *Messages) arrivedPayload(c *Client, m *schema.Method, a *transport.Arrival, out rpcqueue.Outcome) {
	w := q.watched[m.Queue.ID]
	if w == nil {
		return
	}
	p := Payload{Client: c.id, Outcome: out.String()}
	if s := loop.Stage(a.Message.Stage); s.Valid() {
		p.Stage = s.String()
	}
	if out.Queued() {
		p.msg = a.Decoded
	}
	var encoded []byte
	if a.Decoded != nil {
		encoded, _ = m.In.Append([]byte{}, a.Decoded) // It was decoded from such bytes.
	}
	q.addPayload(w, p, encoded)
}

// sentPayload keeps a message of a watched method that the server sends.
func (q *Messages) sentPayload(m *schema.Method, encoded []byte) {
	if w := q.watched[m.Queue.ID]; w != nil {
		q.addPayload(w, Payload{Outcome: "sent"}, encoded)
	}
}

// endPayload sets the outcome of a queued message.
func (q *Messages) endPayload(it *rpcqueue.Item, out rpcqueue.Outcome) {
	w := q.watched[it.Method.ID]
	if w == nil {
		return
	}
	for i := range w.last {
		if p := &w.last[i]; p.msg != nil && p.msg == it.Msg {
			p.Outcome, p.msg = out.String(), nil
		}
	}
}

// forgetFrom drops the queued messages of a client.
func (q *Messages) forgetFrom(client uint64) {
	q.queue.Forget(client)
	for _, w := range q.watched {
		for i := range w.last {
			if p := &w.last[i]; p.msg != nil && p.Client == client {
				p.Outcome, p.msg = rpcqueue.ClientGone.String(), nil
			}
		}
	}
}
