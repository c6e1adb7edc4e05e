package e2e_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// typed has a field for each tag with a limit.
type typed struct {
	Text  string                  `net:"max=8"`
	Bytes []byte                  `net:"max=8"`
	List  []int32                 `net:"max=2"`
	Words []string                `net:"max=2,each=4"`
	Ammo  map[string]int32        `net:"max=2,each=4"`
	Seen  map[int32]struct{}      `net:"max=2"`
	Proto *wrapperspb.StringValue `net:"max=8"`
	Big   []byte                  `net:"max=65536"`
}

var (
	sizeSchema = netloop.NewSchema("size", 1, 0)
	typedLine  = netloop.NewRPC[typed](sizeSchema, "line")
	typedLoose = netloop.NewRPC[typed](sizeSchema, "loose", netloop.Unreliable())
	typedAsk   = netloop.NewCall[typed, typed](sizeSchema, "ask")
	typedProto = netloop.NewRPC[*wrapperspb.BytesValue](sizeSchema, "proto")
)

// sized returns a message with n bytes in Big.
func sized(n int) typed { return typed{Big: make([]byte, n)} }

// tooMuch has messages that each exceed one limit by one, by the text that the error must
// contain.
var tooMuch = map[string]typed{
	"Text":  {Text: strings.Repeat("x", 9)},
	"Bytes": {Bytes: make([]byte, 9)},
	"List":  {List: make([]int32, 3)},
	"Words": {Words: []string{"12345"}},
	"Ammo":  {Ammo: map[string]int32{"12345": 1}},
	"Seen":  {Seen: map[int32]struct{}{1: {}, 2: {}, 3: {}}},
	"Proto": {Proto: wrapperspb.String(strings.Repeat("x", 9))},
	"15808": sized(netloop.MaxMessage),
}

type sizeGame struct{ got []typed }

func (*sizeGame) Schema() *netloop.Schema { return sizeSchema }

func (g *sizeGame) Open(r *netloop.Room) error {
	take := func(_ *netloop.Tick, _ *netloop.Client, m typed) error { g.got = append(g.got, m); return nil }
	typedLine.Handle(r, take)
	typedLoose.Handle(r, take)
	typedAsk.Handle(r, func(_ *netloop.Tick, _ *netloop.Client, q typed) (typed, error) {
		return sized(len(q.Big) + int(q.List[0])), nil
	})
	typedProto.Handle(r, func(*netloop.Tick, *netloop.Client, *wrapperspb.BytesValue) error { return nil })
	return nil
}

// A message that exceeds a limit of any tag is an error of the client's Send, and the connection
// remains open: a player's text is not a mistake of the programmer.
func TestTooLargeMessagesAreErrorsOnAClient(t *testing.T) {
	g := &sizeGame{}
	w := netlooptest.New(t, g)
	c := play(t, w, perfect)
	says := func(what, want string, err error) {
		t.Helper()
		if !errors.Is(err, client.ErrDoesNotFit) || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "client: ") {
			t.Errorf("%s: %v, want %s", what, err, want)
		}
	}
	unsent := uint64(0)
	for want, m := range tooMuch {
		says("Send", want, client.Send(c, typedLine, m))
		var asked error
		client.Call(c, typedAsk, m, func(_ *netloop.Tick, _ typed, err error) { asked = err })
		w.Step(2)
		says("Ask", want, asked)
		unsent += 2
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	awaited := make(chan error)
	go func() {
		_, err := client.Await(ctx, c, typedAsk, tooMuch["Text"])
		awaited <- err
	}()
	for waiting := true; waiting; {
		select {
		case err := <-awaited:
			waiting = false
			says("Await", "Text", err)
		default:
			w.Step(1)
			runtime.Gosched()
		}
	}
	unsent++
	says("unreliable", "1086", client.Send(c, typedLoose, sized(netloop.MaxUnreliable)))
	says("protobuf", "15808", client.Send(c, typedProto, wrapperspb.Bytes(make([]byte, netloop.MaxMessage))))
	if n := c.Stats().Unsent; n != unsent+2 {
		t.Errorf("%d are counted, want %d", n, unsent+2)
	}
	if err := client.Send(c, typedLine, typed{Text: "fits"}); err != nil {
		t.Error(err)
	}
	w.Step(3)
	if len(g.got) != 1 || g.got[0].Text != "fits" || c.Closed() != nil {
		t.Errorf("arrived %v; closed %v", g.got, c.Closed())
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	var closed *netloop.Closed
	if err := client.Send(c, typedLine, typed{}); !errors.As(err, &closed) {
		t.Errorf("after the end: %v", err)
	}
}

// MaxMessage applies to both senders, to questions and to answers.
func TestMaxMessageAppliesInEveryDirection(t *testing.T) {
	g := &sizeGame{}
	w := netlooptest.New(t, g)
	c := play(t, w, perfect)
	var got int
	client.Handle(c, typedLine, func(_ *netloop.Tick, m typed) { got = len(m.Big) })
	rest := netloop.MaxMessage // size of the rest of the message
	for client.Send(c, typedLine, sized(rest)) != nil {
		rest--
	}
	most := rest
	if over := netloop.MaxMessage - most; over < 2 || over > 40 {
		t.Fatalf("without Big a message takes %d bytes", over)
	}
	w.Step(3)
	if len(g.got) != 1 || len(g.got[0].Big) != most {
		t.Errorf("%d messages arrived", len(g.got))
	}
	w.Tick(func(tick *netloop.Tick) {
		typedLine.Send(tick, netloop.Everyone(), sized(most))
		if text := said(func() { typedLine.Send(tick, netloop.Everyone(), sized(most+1)) }); !strings.Contains(text, "15809 bytes, but a reliable message has at most 15808") {
			t.Errorf("the server's: %q", text)
		}
	})
	answer := func(n int) (size int, err error) {
		done := false
		client.Call(c, typedAsk, typed{List: []int32{int32(n)}}, func(_ *netloop.Tick, r typed, e error) { size, err, done = len(r.Big), e, true })
		w.Until(60, func() bool { return done })
		return size, err
	}
	if n, err := answer(most); n != most || err != nil {
		t.Errorf("an answer of %d bytes: %v", n, err)
	}
	if got != most {
		t.Errorf("the client got %d bytes of %d", got, most)
	}
	var refused *netloop.Refusal
	if _, err := answer(most + 1); !errors.As(err, &refused) || refused.Code != netloop.CodeInternal {
		t.Errorf("an answer of one byte more: %v", err)
	}
}

func TestTruncateCutsBetweenCharacters(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int
		want string
	}{
		{"", 0, ""}, {"abc", 3, "abc"}, {"abc", 2, "ab"}, {"abc", 0, ""}, {"abc", -1, ""},
		{"für", 2, "f"}, {"für", 3, "fü"}, {"a😀b", 4, "a"}, {"a😀b", 5, "a😀"}, {"世界", 5, "世"}, {"世界", 6, "世界"},
	} {
		if got := netloop.Truncate(c.text, c.n); got != c.want {
			t.Errorf("Truncate(%q, %d) = %q, want %q", c.text, c.n, got, c.want)
		}
	}
}
