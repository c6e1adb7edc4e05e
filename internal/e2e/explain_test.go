package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// A game of which each reason can be asked for: a dial has a field of each kind, a lamp is what
// an overloaded server sheds, and a chart fits no packet.
var (
	panel  = netloop.NewSchema("panel", 1, 0)
	dials  = netloop.NewClass[dialState](panel, "dial")
	lamps  = netloop.NewClass[lamp](panel, "lamp", netloop.Weight(0.25), netloop.MinRate(0.01))
	charts = netloop.NewClass[chart](panel, "chart")
)

type dialState struct {
	Pos  struct{ X, Y int32 }
	Heat float32 `net:"quant=1/8,threshold=10"`
	Mode int32   `net:"interval=1s"`
	Key  int32   `net:"read=owner"`
	Pad  [100]byte
}

type lamp struct{ On int32 }

type chart struct {
	Cells []line `net:"max=1200"`
}

// panels is a game made of one function.
type panels func(r *netloop.Room)

func (panels) Schema() *netloop.Schema      { return panel }
func (p panels) Open(r *netloop.Room) error { p(r); return nil }

// asker plays with one client and asks for reasons.
type asker struct {
	*netlooptest.World
	t    *testing.T
	c    *client.Client
	dial *netloop.Object[dialState]
}

func newAsker(t *testing.T, link netlooptest.Link, o ...netlooptest.Option) *asker {
	t.Helper()
	return askerOf(t, panels(func(*netloop.Room) {}), link, o...)
}

func askerOf(t *testing.T, g netloop.Game, link netlooptest.Link, o ...netlooptest.Option) *asker {
	t.Helper()
	a := &asker{t: t, World: netlooptest.New(t, g, o...)}
	a.Tick(func(tick *netloop.Tick) { a.dial = dials.Spawn(tick, dialState{}) })
	a.c = a.Join("", nil, link)
	a.Until(600, func() bool { return a.c.State().Phase == client.Playing })
	a.Step(30) // everything is acknowledged
	return a
}

func (a *asker) change(fn func(tick *netloop.Tick, d *dialState)) {
	a.Tick(func(tick *netloop.Tick) { fn(tick, a.dial.Edit(tick)) })
}

func (a *asker) move() { a.change(func(_ *netloop.Tick, d *dialState) { d.Pos.X++ }) }

// ask explains a field of the dial.
func (a *asker) ask(field string) netloop.Explanation {
	a.t.Helper()
	return explain(a, a.dial, field)
}

func explain[S any](a *asker, o *netloop.Object[S], field string) (x netloop.Explanation) {
	a.t.Helper()
	a.Tick(func(tick *netloop.Tick) {
		c, ok := tick.Client(a.c.ID())
		if !ok {
			a.t.Fatal("the client has left")
		}
		var err error
		if x, err = o.Explain(tick, c, field); err != nil {
			a.t.Fatal(err)
		}
	})
	return x
}

// want fails unless the dial's field has this reason now.
func (a *asker) want(field string, r netloop.Reason) {
	a.t.Helper()
	if x := a.ask(field); x.Reason != r {
		a.t.Errorf("want %v: %v", r, x)
	}
}

var far = netlooptest.Link{Delay: 100 * time.Millisecond}

func TestExplainNotEditedUnchangedAndAcknowledged(t *testing.T) {
	a := newAsker(t, perfect)
	a.want("Pos.X", netloop.ReasonNotEdited)
	a.change(func(*netloop.Tick, *dialState) {})
	a.Step(1)
	a.want("Pos.X", netloop.ReasonUnchanged)
	a.Step(1)
	a.want("Pos.X", netloop.ReasonNotEdited)
	a.move()
	a.Step(5)
	a.want("Pos.X", netloop.ReasonAcknowledged)
	a.want("Pos.Y", netloop.ReasonNotEdited)
}

func TestExplainSentAndInFlight(t *testing.T) {
	a := newAsker(t, far)
	a.move()
	a.Step(1)
	x := a.ask("Pos.X")
	if x.Reason != netloop.ReasonSent || x.Changed != x.Tick || x.Sent != x.Tick || x.Version != x.Tick || x.Copies != 1 || len(x.Packets) != 1 ||
		x.Baseline == 0 || x.Baseline >= x.Tick || x.Visible == 0 || x.Class != "dial" || x.Client != a.c.ID() || x.Object != a.dial.Ref().String() {
		t.Errorf("%+v", x)
	}
	a.Step(3) // the second copy, and then nothing
	y := a.ask("Pos.X")
	if y.Reason != netloop.ReasonInFlight || y.Changed != x.Changed || y.Copies != 2 || len(y.Packets) != 2 || y.Packets[0] != x.Packets[0] {
		t.Errorf("%+v after %+v", y, x)
	}
	if s := y.String(); !strings.Contains(s, "neither acknowledged nor lost") || !strings.Contains(s, "Pos.X") {
		t.Error(s)
	}
	a.Step(20)
	if z := a.ask("Pos.X"); z.Reason != netloop.ReasonAcknowledged || z.Baseline != x.Changed || len(z.Packets) != 0 {
		t.Errorf("%+v", z)
	}
}

func TestExplainHiddenNewAndDespawned(t *testing.T) {
	a := newAsker(t, perfect)
	a.Tick(func(tick *netloop.Tick) { a.dial.SetVisible(tick, netloop.To()) })
	a.Step(1)
	a.want("Pos.X", netloop.ReasonHidden)
	var o *netloop.Object[dialState]
	a.Tick(func(tick *netloop.Tick) { o = dials.Spawn(tick, dialState{}) })
	if x := explain(a, o, "Pos.X"); x.Reason != netloop.ReasonNew {
		t.Error(x)
	}
	a.Step(1)
	a.Tick(func(tick *netloop.Tick) { o.Despawn(tick) })
	if x := explain(a, o, "Pos.X"); x.Reason != netloop.ReasonDespawned {
		t.Error(x)
	}
}

func TestExplainNoPermission(t *testing.T) {
	a := newAsker(t, perfect)
	a.change(func(_ *netloop.Tick, d *dialState) { d.Key++ })
	a.Step(1)
	a.want("Key", netloop.ReasonNoPermission)
	a.want("Pos.X", netloop.ReasonUnchanged)
	a.Tick(func(tick *netloop.Tick) { a.dial.SetOwner(tick, a.c.ID()) })
	a.Step(1)
	a.want("Key", netloop.ReasonSent)
	a.want("(owner)", netloop.ReasonSent)
}

func TestExplainThresholdAndInterval(t *testing.T) {
	a := newAsker(t, perfect)
	a.Step(60)
	a.change(func(_ *netloop.Tick, d *dialState) { d.Heat, d.Mode = 3, 1 })
	a.Step(1)
	a.want("Heat", netloop.ReasonThreshold)
	a.want("Mode", netloop.ReasonSent)
	a.change(func(_ *netloop.Tick, d *dialState) { d.Mode = 2 })
	a.Step(10)
	x := a.ask("Mode")
	if x.Reason != netloop.ReasonInterval || x.Until != x.Changed+60 {
		t.Errorf("%+v", x)
	}
	a.Step(int(x.Until - x.Tick))
	a.want("Mode", netloop.ReasonSent)
}

func TestExplainNotDue(t *testing.T) {
	a := newAsker(t, perfect, netlooptest.Room(netloop.RoomSpec{SendEvery: 3}))
	for range 6 {
		a.move()
		a.Step(1)
		x := a.ask("Pos.X")
		if want := x.Tick%3 == 0; want != (x.Reason == netloop.ReasonSent) || !want && x.Reason != netloop.ReasonNotDue {
			t.Error(x)
		}
	}
}

// What was sent is still under way when the object changes again, and the answer goes on telling
// of it.
func TestExplainTellsOfTheVersionBefore(t *testing.T) {
	a := newAsker(t, far, netlooptest.Room(netloop.RoomSpec{SendEvery: 3}))
	for n := range 9 {
		a.move()
		a.Step(1)
		x := a.ask("Pos.X")
		if n < 3 { // the first snapshot that has it
			continue
		}
		if x.Sent != x.Tick-x.Tick%3 || x.Version > x.Sent || x.Copies != 1 || len(x.Packets) != 1 {
			t.Error(x)
		}
	}
}

func TestExplainSlotBusy(t *testing.T) {
	a := newAsker(t, perfect)
	a.Stall(a.c, true)
	a.Step(2) // the first of them takes the slot
	a.move()
	a.Step(1)
	a.want("Pos.X", netloop.ReasonSlotBusy)
	a.Stall(a.c, false)
	a.Step(1)
	a.want("Pos.X", netloop.ReasonSent)
}

func TestExplainWindowClosed(t *testing.T) {
	a := newAsker(t, perfect)
	a.Cut(a.c)
	a.Step(20)
	a.change(func(_ *netloop.Tick, d *dialState) { d.Pad[0], d.Pad[40] = 1, 2 })
	for range 60 { // Probes leave now and then; this fits none.
		a.Step(1)
		a.want("Pad", netloop.ReasonWindowClosed)
	}
}

func TestExplainShed(t *testing.T) {
	var load time.Duration
	var a *asker
	var o *netloop.Object[lamp]
	a = askerOf(t, panels(func(r *netloop.Room) {
		r.OnStart(func(t *netloop.Tick) { o = lamps.Spawn(t, lamp{}) })
		r.On(netloop.Update, "test.load", func(*netloop.Tick) {
			if load > 0 {
				a.Spend(load)
			}
		})
	}), perfect)
	load = 20 * time.Millisecond
	a.Until(2000, func() bool { return a.c.Overload() >= netloop.OverloadShedding })
	a.Tick(func(tick *netloop.Tick) { o.Edit(tick).On = 7 })
	a.Step(1)
	a.Until(4, func() bool { return explain(a, o, "On").Reason != netloop.ReasonNotDue })
	if x := explain(a, o, "On"); x.Reason != netloop.ReasonShed {
		t.Error(x)
	}
}

// crowded changes many dials in a tick.
func (a *asker) crowded(n, budget int) (all []*netloop.Object[dialState]) {
	a.Tick(func(tick *netloop.Tick) {
		for range n {
			var d dialState
			d.Pos.X, d.Pos.Y = int32(tick.Rand().Uint32()), int32(tick.Rand().Uint32())
			all = append(all, dials.Spawn(tick, d))
		}
		c, _ := tick.Client(a.c.ID())
		c.SetBudget(tick, budget)
	})
	return all
}

func (a *asker) reasons(all []*netloop.Object[dialState]) map[netloop.Reason]int {
	n := map[netloop.Reason]int{}
	for _, o := range all {
		n[explain(a, o, "Pos.X").Reason]++
	}
	return n
}

func TestExplainBudget(t *testing.T) {
	a := newAsker(t, perfect)
	all := a.crowded(40, 60)
	a.Step(1)
	if n := a.reasons(all); n[netloop.ReasonSent] == 0 || n[netloop.ReasonBudget] == 0 || n[netloop.ReasonSent]+n[netloop.ReasonBudget] != 40 {
		t.Error(n)
	}
}

func TestExplainPackets(t *testing.T) {
	a := newAsker(t, perfect)
	all := a.crowded(2000, 1<<20)
	a.Step(1)
	if n := a.reasons(all); n[netloop.ReasonSent] == 0 || n[netloop.ReasonPackets] == 0 || n[netloop.ReasonSent]+n[netloop.ReasonPackets] != 2000 {
		t.Error(n)
	}
}

func TestExplainStreamAndStreamFull(t *testing.T) {
	a := newAsker(t, far)
	rng := rand.New(rand.NewPCG(1, 2))
	var all []*netloop.Object[chart]
	a.Tick(func(tick *netloop.Tick) {
		for range 12 {
			all = append(all, charts.Spawn(tick, chart{lines(rng, 1200)}))
		}
		c, _ := tick.Client(a.c.ID())
		c.SetBudget(tick, 1<<20)
	})
	count := func() map[netloop.Reason]int {
		n := map[netloop.Reason]int{}
		for _, o := range all {
			n[explain(a, o, "").Reason]++
		}
		return n
	}
	a.Step(1)
	n := count()
	if n[netloop.ReasonSent] == 0 || n[netloop.ReasonStreamFull] == 0 || n[netloop.ReasonSent]+n[netloop.ReasonStreamFull] != 12 {
		t.Error(n)
	}
	a.Step(1)
	if m := count(); m[netloop.ReasonStream] != n[netloop.ReasonSent] || m[netloop.ReasonStreamFull] != n[netloop.ReasonStreamFull] {
		t.Error(m, "after", n)
	}
	a.Until(200, func() bool { return count()[netloop.ReasonNotEdited] == 12 })
}

// Between the poll and the snapshot a change may be neither on its way nor held back: what
// carried it has just been found lost.
func TestExplainNext(t *testing.T) {
	seen := map[netloop.Reason]int{}
	var a *asker
	a = askerOf(t, panels(func(r *netloop.Room) {
		r.On(netloop.Update, "test.ask", func(t *netloop.Tick) {
			for c := range t.Clients() {
				if a == nil || a.dial == nil {
					return
				}
				if x, err := a.dial.Explain(t, c, "Pos.X"); err == nil {
					seen[x.Reason]++
				}
			}
		})
	}), netlooptest.Link{Delay: 50 * time.Millisecond, Loss: 0.4})
	for range 60 {
		a.move()
		a.Step(10)
	}
	if seen[netloop.ReasonNext] == 0 || seen[netloop.ReasonNext] > 60 || seen[netloop.ReasonInFlight] == 0 {
		t.Error(seen)
	}
}

// A name means what lies in it, and of that what has changed last.
func TestExplainTakesNamesOfStructsAndNone(t *testing.T) {
	a := newAsker(t, perfect)
	a.Step(60)
	if x := a.ask(""); x.Field == "(owner)" {
		t.Error("of what came all at once the owner is explained")
	}
	a.change(func(_ *netloop.Tick, d *dialState) { d.Pos.Y++ })
	a.Step(2)
	a.change(func(_ *netloop.Tick, d *dialState) { d.Mode++ })
	a.Step(2)
	for field, want := range map[string]string{"Pos": "Pos.Y", "": "Mode", "Pos.X": "Pos.X", "(owner)": "(owner)"} {
		if x := a.ask(field); x.Field != want {
			t.Errorf("%q is explained as %q", field, x.Field)
		}
	}
	a.Tick(func(tick *netloop.Tick) {
		c, _ := tick.Client(a.c.ID())
		for _, field := range []string{"Po", "Pos.", "pos", "Pos.X.Y"} {
			if _, err := a.dial.Explain(tick, c, field); err == nil || !strings.Contains(err.Error(), "Pos.X, Pos.Y") {
				t.Errorf("%q: %v", field, err)
			}
		}
	})
	var was *netloop.Client
	a.Tick(func(tick *netloop.Tick) { was, _ = tick.Client(a.c.ID()) })
	if err := a.c.Close(); err != nil {
		t.Fatal(err)
	}
	a.Step(10)
	a.Tick(func(tick *netloop.Tick) {
		if _, err := a.dial.Explain(tick, was, "Pos"); err == nil {
			t.Error("a client that has left is explained")
		}
	})
}

// Asking changes nothing: the bytes that leave are the same.
func TestExplainChangesNothing(t *testing.T) {
	play := func(ask bool) (sent int) {
		a := newAsker(t, bad)
		for range 100 {
			a.move()
			a.Step(1)
			if ask {
				a.ask("")
				a.ask("Heat")
			}
		}
		return int(a.c.Stats().Packets)
	}
	if without, with := play(false), play(true); without != with {
		t.Errorf("%d packets when nobody asks, %d when somebody does", without, with)
	}
}

func TestExplainIsServedAsJSON(t *testing.T) {
	var ref netloop.Ref[dialState]
	ready := make(chan struct{})
	s, _ := serve(t, panels(func(r *netloop.Room) {
		r.OnStart(func(t *netloop.Tick) { ref = dials.Spawn(t, dialState{}).Ref(); close(ready) })
	}), 60)
	<-ready
	c := start(t, connectTo(t, s.Addr().String(), panel), nil)
	get := func(query string) (int, map[string]any) {
		status, body := page(t, s, "/explain"+query)
		var v map[string]any
		if status == http.StatusOK {
			if err := json.Unmarshal([]byte(body), &v); err != nil {
				t.Fatalf("%s: %v in %s", query, err, body)
			}
		}
		return status, v
	}
	query := fmt.Sprintf("?client=%d&object=%v&field=Pos.X", c.ID(), ref)
	waitFor(t, func() bool { status, v := get(query); return status == http.StatusOK && v["reason"] == "not_edited" })
	_, v := get(query)
	if packets, ok := v["packets"].([]any); !ok || len(packets) > 0 {
		t.Errorf("packets is %v, want an empty list", v["packets"])
	}
	if v["field"] != "Pos.X" || v["class"] != "dial" || v["object"] != ref.String() || !strings.Contains(v["text"].(string), "the client has it") {
		t.Error(v)
	}
	if status, body := page(t, s, fmt.Sprintf("/explain?client=%d", c.ID())); status != http.StatusOK || !strings.Contains(body, `"objects":[{"object":"`+ref.String()+`","class":"dial","owner":0}],"more":0}`) ||
		!strings.Contains(body, `{"ask":"name one of them: add object=`+ref.String()+` to the question`) {
		t.Error(status, body)
	}
	if _, body := page(t, s, "/explain?client=99"); !strings.Contains(body, fmt.Sprintf("there is no client 99; there are %d\n", c.ID())) {
		t.Error(body)
	}
	for query, want := range map[string]int{
		"?client=": http.StatusBadRequest, "?client=x&object=0.1": http.StatusBadRequest, "?client=1&object=zero": http.StatusBadRequest,
		"?client=1&object=70000.1": http.StatusBadRequest, "?client=1&object=": http.StatusBadRequest,
		"?client=99&object=0.1": http.StatusNotFound, "?client=1&object=0.77": http.StatusNotFound,
		"?client=1&room=other&object=0.1": http.StatusNotFound, query + "s": http.StatusNotFound,
	} {
		if status, _ := get(query); status != want {
			t.Errorf("%q: %d, want %d", query, status, want)
		}
	}
}

// A question without a client, or without an object, lists what there is and says how to go on. The
// list is bounded, and so is what a game puts into it.
func TestExplainListsWhatItCanBeAskedFor(t *testing.T) {
	joined := make(chan struct{})
	s, _ := serve(t, panels(func(r *netloop.Room) {
		r.OnAdmit(func(_ context.Context, j *netloop.Join) error {
			j.Subject = strings.Repeat("é", 100)
			return nil
		})
		r.OnStart(func(t *netloop.Tick) {
			for range 1003 {
				dials.Spawn(t, dialState{})
			}
			lamps.Spawn(t, lamp{})
		})
		r.OnJoin(func(*netloop.Tick, *netloop.Client) error { close(joined); return nil })
	}), 60)
	type answer struct {
		Ask     string
		Clients []struct {
			Client        netloop.ClientID
			Subject, Addr string
		}
		Objects []struct{ Object, Class string }
		More    int
	}
	get := func(query string) (a answer) {
		t.Helper()
		status, body := page(t, s, "/explain"+query)
		if err := json.Unmarshal([]byte(body), &a); err != nil || status != http.StatusOK {
			t.Fatalf("%q: %d, %v: %.200s", query, status, err, body)
		}
		return a
	}
	if a := get(""); len(a.Clients) != 0 || !strings.Contains(a.Ask, "nobody is here") {
		t.Errorf("%+v", a)
	}
	c := start(t, connectTo(t, s.Addr().String(), panel), nil)
	<-joined
	a := get("?room=")
	if len(a.Clients) != 1 || a.Clients[0].Client != c.ID() || a.Clients[0].Addr == "" || a.More != 0 || !strings.Contains(a.Ask, fmt.Sprintf("add client=%d ", c.ID())) {
		t.Fatalf("%+v", a)
	}
	if name := a.Clients[0].Subject; name != strings.Repeat("é", 32)+"…" {
		t.Errorf("subject %q", name)
	}
	client := fmt.Sprintf("?client=%d", c.ID())
	if a := get(client); len(a.Objects) != 1000 || a.More != 4 {
		t.Errorf("%d objects and %d more", len(a.Objects), a.More)
	}
	a = get(client + "&class=lamp")
	if len(a.Objects) != 1 || a.Objects[0].Class != "lamp" || a.More != 0 || !strings.Contains(a.Ask, "add object="+a.Objects[0].Object+" ") {
		t.Errorf("%+v", a)
	}
	if a = get(client + "&class=chart"); len(a.Objects) != 0 || !strings.Contains(a.Ask, "there is no object") {
		t.Errorf("%+v", a)
	}
	if status, body := page(t, s, "/explain"+client+"&class=tree"); status != http.StatusNotFound || !strings.Contains(body, `no class "tree"`) {
		t.Error(status, body)
	}
}

// Every reason has a name of its own.
func TestReasonsHaveNames(t *testing.T) {
	var names []string
	for r := netloop.ReasonDespawned; r <= netloop.ReasonNext; r++ {
		names = append(names, r.String())
	}
	slices.Sort(names)
	if slices.Contains(names, "") || slices.Contains(names, "unknown") || len(slices.Compact(names)) != int(netloop.ReasonNext) {
		t.Error(names)
	}
	if s := netloop.Reason(0).String() + netloop.Reason(200).String(); s != "unknownunknown" {
		t.Error(s)
	}
}
