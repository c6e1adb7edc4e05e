package history

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/netloop/netloop/internal/input"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/recording"
	"github.com/netloop/netloop/internal/transport"
)

// MessagesAnswer lists the facts that reached the room from outside before a tick, in the order in
// which the room has read them. More is the number of facts that did not fit into the answer.
type MessagesAnswer struct {
	Around
	Arrivals []Arrival `json:"arrivals"` // in the order in which the room read them
	More     int       `json:"more"`
}

// Arrival is a fact from outside of the room.
type Arrival struct {
	// Kind is message, inputs, join, drop, post, result or other.
	Kind   string `json:"kind"`
	Client uint64 `json:"client,omitempty"` // id of the client; left out without one
	// AtNS is the time from the arrival to the start of the tick.
	AtNS int64 `json:"at_ns,omitempty"`
	// Method, Stage and Call are those of a message.
	Method string `json:"method,omitempty"` // of a message
	Stage  string `json:"stage,omitempty"`  // of a message
	Call   uint64 `json:"call,omitempty"`   // number of a call
	// Value is the message as JSON; null if it cannot be decoded. A secret method has none.
	Value json.RawMessage `json:"value,omitempty"`
	// Inputs are those of a packet, the newest first. A packet repeats older ones.
	Inputs []InputRow `json:"inputs,omitempty"`
	// Text describes other kinds.
	Text string `json:"text,omitempty"`
}

// InputRow is an input of a fixed step.
type InputRow struct {
	Step  uint64          `json:"step"`  // number of the fixed step
	Value json.RawMessage `json:"value"` // of the input
}

// withhold removes the content of a fact, and the text of an error, which may repeat the content.
func (a *Arrival) withhold() {
	a.Value, a.Inputs = nil, nil
	if a.Kind == "result" {
		a.Text, _, _ = strings.Cut(a.Text, ":")
	}
}

// Messages returns the facts that reached the room from outside before a tick.
func (r *Recording) Messages(tick uint64) (MessagesAnswer, error) {
	position, err := r.asOf(tick)
	if err != nil {
		return MessagesAnswer{}, err
	}
	rec, err := nextTick(recording.NewReaderAt(r.cfg.File, r.store.ticks.at(position).record))
	if err != nil {
		return MessagesAnswer{}, err
	}
	a, left := MessagesAnswer{Around: r.around(position), Arrivals: []Arrival{}}, budget{maxRows, maxAnswer}
	facts := len(rec.Arrivals) + len(rec.Posts) + len(rec.Results)
	add := func(row Arrival, size int) {
		if r.withheld {
			row.withhold()
		}
		if left.take(size) {
			a.Arrivals = append(a.Arrivals, row)
		}
	}
	inputs := r.inputReader()
	for i := range rec.Arrivals {
		add(r.arrival(&rec.Arrivals[i], &rec.Input, inputs))
	}
	for i := range rec.Posts {
		row := r.post(&rec.Posts[i])
		add(row, len(row.Value))
	}
	for i := range rec.Results {
		row := Arrival{Kind: "result", Text: fmt.Sprintf("work %d has its result", rec.Results[i].Work)}
		if err := rec.Results[i].Err; err != nil {
			row.Text = fmt.Sprintf("work %d has failed: %.200s", rec.Results[i].Work, err.Text)
		}
		add(row, len(row.Text))
	}
	a.More = facts - len(a.Arrivals)
	return a, nil
}

// inputReader returns a reader of packets of inputs; nil if the schema has no input.
func (r *Recording) inputReader() *input.Reader {
	if r.schema.Input() == nil {
		return nil
	}
	return input.NewReader(r.schema.Input().Form(), input.Repeats(r.spec.Fixed.Period()))
}

// arrival returns a row of the answer, and the bytes of its values.
func (r *Recording) arrival(a *recording.Arrival, in *loop.Input, inputs *input.Reader) (row Arrival, size int) {
	row = Arrival{Kind: "other", Client: a.Client, AtNS: int64(max(in.Start-a.At, 0))}
	switch a.Kind {
	case transport.MessageArrived:
		row.Kind, row.Method, row.Call = "message", r.methodName(a.Message.Method), a.Message.Call
		if s := loop.Stage(a.Message.Stage); s.Valid() {
			row.Stage = s.String()
		}
		row.Value, row.Text = r.message(a.Message.Method, a.Message.Payload)
		return row, len(row.Value) + len(row.Text)
	case transport.Inputs:
		row.Kind = "inputs"
		row.Inputs, size = r.inputs(inputs, a.State, in.FirstFixedStep)
		return row, size
	case transport.Joined:
		row.Kind, row.Text = "join", "joins or resumes"
		if a.Entrance != nil {
			row.Text += " from " + a.Entrance.Addr
		}
	case transport.Gone:
		row.Kind, row.Text = "drop", "the connection is gone"
		if a.Closed != nil {
			row.Text += fmt.Sprintf(": %s, %.200s", a.Closed.Code.Name(), a.Closed.Text)
		}
	default:
		row.Text = kindTexts[a.Kind]
	}
	return row, len(row.Text)
}

// kindTexts has the texts of the arrivals whose Kind in an answer is other.
var kindTexts = map[transport.ArrivalKind]string{
	transport.Acks: "acknowledges snapshots", transport.DigestRequest: "asks for digests", transport.FullStateRequest: "asks for the full state",
	transport.RecordsApplied: "acknowledges large records", transport.Discarded: "sent data that was discarded", transport.Received: "acknowledges messages",
	transport.Moved: "has another address", transport.NoRoom: "sent a message beyond a limit", transport.MoveAsked: "moves to another room", transport.Mispredicted: "reports mispredictions",
}

// secretText replaces a message of a method that the game has declared as secret.
const secretText = "the game keeps this method's messages secret"

// message returns a message as JSON, or a base64 string of bytes that are no such message. For a
// secret one it returns a text only.
func (r *Recording) message(method uint32, payload []byte) (value json.RawMessage, text string) {
	m, ok := r.schema.Method(method)
	if ok && m.Secret {
		return nil, secretText
	}
	if ok {
		if value, err := m.In.JSON(payload); err == nil {
			return value, ""
		}
	}
	value, _ = json.Marshal(payload) // Marshal of bytes never fails.
	return value, ""
}

// inputs decodes a packet of inputs, which arrived before a fixed step.
func (r *Recording) inputs(in *input.Reader, packet []byte, before uint64) (rows []InputRow, size int) {
	if in == nil {
		return nil, 0
	}
	for in.Begin(packet, before); in.Next(); {
		v, _, ok := in.Read()
		if !ok {
			break
		}
		text, err := r.schema.Input().JSON(in.Message(v))
		if err != nil {
			text = []byte("null")
		}
		rows = append(rows, InputRow{in.Step(), text})
		size += len(text)
	}
	return rows, size
}

// post returns the row of a message that another goroutine or room posted.
func (r *Recording) post(p *recording.Post) Arrival {
	row := Arrival{Kind: "post", Method: r.methodName(p.Method), Value: json.RawMessage("null")}
	if s := loop.Stage(p.Stage); s.Valid() {
		row.Stage = s.String()
	}
	if p.From != nil {
		row.Text = "from room " + p.From.Room
	}
	m, ok := r.schema.Method(p.Method)
	switch {
	case !ok:
		return row
	case m.Secret:
		row.Value, row.Text = nil, secretText
		return row
	}
	msg := m.In.New()
	if err := recording.ReadValue(p.Msg, msg); err != nil {
		return row
	}
	if b, err := m.In.Append(nil, msg); err == nil {
		if text, err := m.In.JSON(b); err == nil {
			row.Value = text
		}
	}
	return row
}
