package room_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	logtest "go.uber.org/zap/zaptest/observer"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/logging"
	"github.com/netloop/netloop/internal/recording"
	"github.com/netloop/netloop/internal/transport"
)

// followed is a recorded game; its recording is changed before it is replayed. In its first tick
// it starts work that finishes in the third at the earliest.
func followed(ran *int) bareGame {
	return func(r *netloop.Room) {
		bareWords.Handle(r, func(*netloop.Tick, *netloop.Client, word) error { *ran++; return nil })
		r.OnStart(func(tick *netloop.Tick) {
			netloop.Go(tick, func(context.Context) (word, error) { return word{}, nil }, func(*netloop.Tick, word, error) { *ran++ })
		})
	}
}

// recordFollowed records two ticks of a game, with a join in the first, and changes the second.
// The result of the work is not in them.
func recordFollowed(t *testing.T, change func(*recording.Tick)) []byte {
	t.Helper()
	var file bytes.Buffer
	b := newBareAs(t, netloop.Config{Record: &file}, followed(new(int)))
	b.join()
	b.step()
	b.step()
	return changeSecond(t, file.Bytes(), change)
}

// changeSecond changes the second tick of a recording.
func changeSecond(t *testing.T, file []byte, change func(*recording.Tick)) []byte {
	t.Helper()
	in, head, err := recording.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	var changed bytes.Buffer
	out, err := recording.NewWriter(&changed, head)
	for n := 1; n <= 2 && err == nil; n++ {
		var tick recording.Tick
		record, readErr := in.Next()
		err = errors.Join(err, readErr, recording.ReadTick(record, &tick))
		if tick.Results = nil; n == 2 { // The work may be done at once.
			change(&tick)
		}
		record, writeErr := recording.AppendTick(nil, &tick)
		err = errors.Join(err, writeErr, out.Write(record))
	}
	if err != nil {
		t.Fatal(err)
	}
	return changed.Bytes()
}

// replayFollowed replays it to its end. It returns the final error, and how many functions of the
// game ran. A panic in a system is a fault of the engine, which has to handle each recording.
func replayFollowed(t *testing.T, file []byte) (ran int, err error) {
	t.Helper()
	core, logs := logtest.New(zapcore.ErrorLevel)
	p, err := netloop.NewReplay(netloop.Config{Log: logging.Slog(zap.New(core))}, followed(&ran), bytes.NewReader(file))
	for err == nil {
		_, err = p.Step()
	}
	for _, line := range logs.All() {
		t.Errorf("the log has %q, %v", line.Message, line.ContextMap())
	}
	return ran, err
}

// A recorded fact that the room cannot process ends the replay in that tick, and the error names
// the first such fact; the game is not called with it.
func TestAReplayNamesAnImpossibleFact(t *testing.T) {
	hello(bareSchema) // From now on its methods have ids.
	arrival := func(a recording.Arrival) func(*recording.Tick) {
		return func(tick *recording.Tick) { tick.Arrivals = append(tick.Arrivals, a) }
	}
	message := func(method uint32, payload string) func(*recording.Tick) {
		return arrival(recording.Arrival{
			Kind: transport.MessageArrived, Client: 1, Conn: 1, Decoded: true, Message: transport.Message{Method: method, Payload: []byte(payload)},
		})
	}
	post := func(p recording.Post) func(*recording.Tick) {
		return func(tick *recording.Tick) { tick.Posts = append(tick.Posts, p) }
	}
	result := func(res recording.Result) func(*recording.Tick) {
		return func(tick *recording.Tick) { tick.Results = append(tick.Results, res) }
	}
	comes := func(client uint64, e *recording.Entrance) func(*recording.Tick) {
		return arrival(recording.Arrival{Kind: transport.Joined, Client: client, Conn: 1, Entrance: e})
	}
	for want, change := range map[string]func(*recording.Tick){
		"a message of method 99, which the schema does not have": message(99, ""),
		`a message "words": `:                                           message(idOf(bareWords), "\xff"),
		"client 1 joins twice, or without a word":                       comes(1, &recording.Entrance{}),
		"client 2 joins twice, or without a word":                       comes(2, nil),
		"the join of client 2: ":                                        comes(2, &recording.Entrance{Join: []byte{0xff}}),
		"client 1 goes without a reason":                                arrival(recording.Arrival{Kind: transport.Gone, Client: 1, Conn: 1}),
		"a posted message of method 99, which the schema does not have": post(recording.Post{Method: 99}),
		`a posted "words": `:                                            post(recording.Post{Method: idOf(bareWords), Stage: uint8(netloop.Update), Msg: []byte{0xff}}),
		"the result of work 2, which nobody has asked for":              result(recording.Result{Work: 2}),
		"the result of work 1: ":                                        result(recording.Result{Work: 1, Value: []byte{0xff}}),
	} {
		file := recordFollowed(t, func(tick *recording.Tick) {
			change(tick)
			result(recording.Result{Work: 3})(tick) // A second failure, which is not named.
		})
		ran, err := replayFollowed(t, file)
		var d *netloop.Divergence
		if !errors.As(err, &d) || d.Tick != 2 || !strings.HasPrefix(d.What, want) || ran != 0 {
			t.Errorf("%s: the error is %v, and %d functions of the game ran", want, err, ran)
		}
	}
}

// The inbox may hold data of a client after its end. A replay ignores it too.
func TestAReplayIgnoresDataOfEndedClients(t *testing.T) {
	file := recordFollowed(t, func(tick *recording.Tick) {
		for _, kind := range []transport.ArrivalKind{transport.MessageArrived, transport.Gone, transport.Acks} {
			tick.Arrivals = append(tick.Arrivals, recording.Arrival{Kind: kind, Client: 2, Conn: 1}, recording.Arrival{Kind: kind, Client: 1, Conn: 2})
		}
	})
	ran, err := replayFollowed(t, file)
	if !errors.Is(err, io.EOF) || ran != 0 {
		t.Errorf("the replay ends with %v, and %d functions of the game ran", err, ran)
	}
}
