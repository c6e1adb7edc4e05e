package simulation

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/bridge"
)

// operator is a person with the inspector, and checks its pages. The documents: "The inspector" in
// OPERATING.md, and the texts of the pages in inspect.go of the root.
//
//   - A running room answers each question and executes each command, also if it sleeps. It tells
//     of one that it refuses.
//   - A system that is disabled does not run. Built-in systems cannot be disabled.
//   - No page for a token of role read has a field that not all clients may read.
//
// The effects of kicks, locks, closes and emulated networks are checked as those of the game: by
// the checks of reasons, listings, ends and recordings.
type operator struct {
	p        *play
	asks     []*ask
	disabled map[systemKey]uint64 // with the runs of the system until then
	asked    map[systemKey]*ask   // the newest request for a system
	emulated []*ask               // requests of networks that were granted
}

type systemKey struct {
	room   roomKey
	system string
}

// ask is a request that waits for its answer.
type ask struct {
	key    roomKey
	path   string
	query  url.Values
	at     time.Duration
	cancel context.CancelFunc
	done   chan struct{}
	v      any
	err    error
	then   func(a *ask)
	writes bool // it has the role write
}

// askTime bounds a request, as the inspector's listener does.
const askTime = 5 * time.Second

func newOperator(p *play) operator {
	return operator{p: p, disabled: map[systemKey]uint64{}, asked: map[systemKey]*ask{}}
}

// act asks for a page, or lets the server do something.
func (o *operator) act(e *Event) {
	f := o.p.rooms.byName[e.Room]
	q := url.Values{}
	if e.Room != "" {
		q.Set("room", e.Room)
	}
	if f == nil {
		o.ask(roomKey{name: e.Room}, "/api/clients", q, nil)
		return
	}
	id := netloop.ClientID(999)
	if g := o.p.bots[e.Bot]; g != nil && g.c.Room() == e.Room && f.in[g.c.ID()] != nil {
		id = g.c.ID()
	}
	n := e.N >> 8
	switch e.N % 12 {
	case 0:
		if q.Set("text", "the story kicks"); f.in[id] != nil {
			o.p.reasons.kick(f.in[id].bot)
			f.kicked[id] = true
		}
		o.about(f.key, "/api/clients/kick", id, q)
	case 1:
		q.Set("network", []string{"rtt=100ms,loss=5%", "jitter=20ms", "", "corrupt=1%"}[n%4])
		o.about(f.key, "/api/clients/simulate", id, q)
	case 2, 3:
		o.able(f, []string{"simulation.busy", "simulation.often", "simulation.step", "netvar.snapshot", "nothing"}[n%5], n>>8%2 == 0)
	case 4:
		o.ask(f.key, "/api/rooms/"+[]string{"lock", "unlock"}[n%2], q, nil)
	case 5:
		o.close(f, e.For, q)
	default:
		pages := []string{"/rooms", "/loop", "/ticks", "/explain", "/api/overview", "/api/metrics", "/api/clients", "/api/classes", "/api/state", "/api/costs", "/api/log", "/api/methods", "/api/payloads"}
		if q.Set("prefix", "rpc"); n>>8%2 == 0 && e.N%12 < 9 {
			q.Set("client", fmt.Sprint(id))
		}
		path := pages[n%uint64(len(pages))]
		if path == "/explain" && n>>9%2 == 0 {
			q.Set("object", fmt.Sprint(n>>16%20, ".1"))
		}
		o.ask(f.key, path, q, nil)
	}
}

// about asks for something about a client.
func (o *operator) about(key roomKey, path string, id netloop.ClientID, q url.Values) {
	q.Set("client", fmt.Sprint(id))
	o.ask(key, path, q, func(a *ask) {
		if a.err == nil && path == "/api/clients/simulate" {
			o.emulated = append(o.emulated, a)
		}
	})
}

const disablePath = "/api/systems/disable"

// able disables a system, or enables it again.
func (o *operator) able(f *roomFacts, system string, enable bool) {
	q, k, path := url.Values{"room": {f.key.name}, "system": {system}}, systemKey{f.key, system}, disablePath
	if enable {
		path = "/api/systems/enable"
		delete(o.disabled, k)
	}
	a := &ask{key: f.key, path: path, query: q}
	o.asked[k] = a
	a.then = func(a *ask) {
		known := strings.HasPrefix(system, "simulation.") && (f.gameRoom.rules.Often || system != "simulation.often")
		late := a.err != nil && strings.Contains(a.err.Error(), noTick) // See answered.
		if known != (a.err == nil) && !late && o.p.rooms.of(f.key) != nil {
			o.p.fail("operator", "%s of %q: %v", path, system, a.err)
		}
		if a.err == nil && !enable && o.asked[k] == a {
			o.disabled[k] = f.gameRoom.changes
		}
	}
	o.begin(a)
}

// close closes a room.
func (o *operator) close(f *roomFacts, drain time.Duration, q url.Values) {
	if f.key.name == "" {
		return
	}
	q.Set("drain", drain.String())
	q.Set("text", o.p.reasons.tell(f.key.name, netloop.CodeClosing))
	o.p.ends.tell(f.key, drain)
	o.ask(f.key, "/rooms/close", q, nil)
}

// ask begins a request. Its answer is taken by poll.
func (o *operator) ask(key roomKey, path string, q url.Values, then func(a *ask)) {
	o.begin(&ask{key: key, path: path, query: q, then: then})
}

func (o *operator) begin(a *ask) {
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	a.at, a.cancel, a.done = o.p.w.Now(), cancel, make(chan struct{})
	o.asks = append(o.asks, a)
	page := bridge.Netloop.Server(o.p.server).Page
	if a.writes {
		page = bridge.Netloop.Server(o.p.server).WriterPage
	}
	go func() {
		a.v, a.err = page(ctx, a.path, a.query)
		close(a.done)
	}()
	o.poll()
}

// poll takes the answers.
func (o *operator) poll() {
	if len(o.asks) > 0 {
		o.p.settle()
	}
	var rest, ready []*ask
	for _, a := range o.asks {
		select {
		case <-a.done:
			ready = append(ready, a)
		default:
			rest = append(rest, a)
		}
	}
	o.asks = rest
	for _, a := range ready {
		a.cancel()
		o.answered(a)
	}
}

var marksInText = regexp.MustCompile(regexp.QuoteMeta(markPrefix) + `[A-Za-z0-9_-]{8}`)

// noTick is in the error of a request that no tick of its room has answered in time.
const noTick = "no tick ended"

// answered checks an answer.
func (o *operator) answered(a *ask) {
	o.p.note("the operator is told of %s %v: %v", a.path, a.query, a.err)
	f := o.p.rooms.of(a.key)
	if a.err != nil && strings.Contains(a.err.Error(), noTick) && f != nil && o.p.w.Now()-a.at > askTime-2*nap && o.p.rooms.stalled < a.at && o.p.ends.told[a.key] == 0 {
		o.p.fail("operator", "room %q has no answer for %s of %v", a.key.name, a.path, a.at)
	}
	text, err := json.Marshal(a.v)
	if err != nil || len(text) == 0 {
		o.p.fail("operator", "%s of room %q: %v", a.path, a.key.name, err)
	}
	for _, mark := range marksInText.FindAllString(string(text), -1) {
		if m := o.p.secrets.marks[mark]; m != nil && m.field != "Name" {
			o.p.fail("secrets", "%s of room %q shows %s of %s", a.path, a.key.name, m.field, m.it.id())
		}
	}
	if a.path == "/api/payloads" && a.err == nil && !a.writes {
		o.p.fail("secrets", "%s of room %q shows %s", a.path, a.key.name, text)
	}
	if a.then != nil {
		a.then(a)
	}
}

// check takes answers, and looks for disabled systems that run.
func (o *operator) check() {
	o.poll()
	for k, runs := range o.disabled {
		if f := o.p.rooms.of(k.room); f != nil && k.system == "simulation.busy" && f.gameRoom.changes > runs {
			o.p.fail("operator", "room %q runs %s, which is disabled", k.room.name, k.system)
		}
	}
}

// heal enables all systems, and removes emulated networks.
func (o *operator) heal() {
	keys := slices.SortedFunc(maps.Keys(o.asked), func(a, b systemKey) int {
		return cmp.Or(cmp.Compare(a.room.name, b.room.name), cmp.Compare(a.system, b.system))
	})
	for _, k := range keys {
		if f := o.p.rooms.of(k.room); f != nil && o.asked[k].path == disablePath {
			o.able(f, k.system, true)
		}
	}
	for _, a := range o.emulated {
		if o.p.rooms.of(a.key) != nil {
			a.query.Set("network", "")
			o.ask(a.key, a.path, a.query, nil)
		}
	}
	clear(o.disabled)
	o.emulated = nil
}

// crashed forgets all requests.
func (o *operator) crashed() {
	for _, a := range o.asks {
		a.cancel()
	}
	o.asks, o.emulated = nil, nil
	clear(o.disabled)
}

// rest looks for requests without an answer.
func (o *operator) rest() {
	for _, a := range o.asks {
		if o.p.w.Now()-a.at > askTime+time.Second {
			o.p.fail("operator", "%s of %v was never answered", a.path, a.at)
		}
	}
}
