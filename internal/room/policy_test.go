package room_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
)

// A schema with one call per policy, each an order about a ship.
var (
	policies   = netloop.NewSchema("policies", 1, 0)
	ships      = netloop.NewClass[ship](policies, "ship")
	limitedTo3 = netloop.NewCall[order, nothing](policies, "limited", netloop.Limit(1, 3))
	twoATick   = netloop.NewCall[order, nothing](policies, "two a tick", netloop.LimitPerTick(2))
	ownersOnly = netloop.NewCall[order, nothing](policies, "owners", netloop.OwnerOnly(order.ship))
	valid      = netloop.NewCall[order, nothing](policies, "valid", netloop.Validate(order.validate))
	admins     = netloop.NewCall[order, nothing](policies, "admins", netloop.MinRole(2))
	strict     = netloop.NewCall[order, nothing](policies, "strict", netloop.OwnerOnly(order.ship), netloop.Validate(order.validate), netloop.MinRole(2))
	atOnce     = netloop.NewCall[order, nothing](policies, "at once", netloop.AtStage(netloop.Initialization), netloop.LateDrop())
	anything   = netloop.NewCall[order, nothing](policies, "anything", netloop.AtStage(netloop.Update, netloop.Initialization, netloop.FixedUpdate), netloop.Timeout(schema.MaxTimeout))
	whatever   = netloop.NewCall[order, nothing](policies, "whatever", netloop.AtStage(netloop.FixedUpdate, netloop.Update), netloop.LateDrop())
	inner      = netloop.NewRPC[order](policies, "inner", netloop.MinRole(9), netloop.ServerOnly())
	unhandled  = netloop.NewCall[order, nothing](policies, "unhandled")
)

type (
	ship    struct{ N int32 }
	nothing struct{}
	order   struct {
		Ship netloop.Ref[ship]
		N    int32
	}
)

func (o order) ship() netloop.Ref[ship] { return o.Ship }

func (o order) validate() error {
	switch {
	case o.N < 0:
		return errors.New("the secret of negative numbers")
	case o.N == 66:
		panic("a mistake of the game's")
	case o.N > 100:
		return netloop.Refuse(netloop.CodeGame, "%d is too far", o.N)
	}
	return nil
}

// policyGame counts the handled calls.
type policyGame struct {
	ran  map[string]int
	next *map[string]any // the claims of the next client
	open func(*netloop.Room)
}

func (policyGame) Schema() *netloop.Schema { return policies }

func (g policyGame) Open(r *netloop.Room) error {
	r.OnAdmit(func(_ context.Context, j *netloop.Join) error { j.Claims = *g.next; return nil })
	for name, k := range map[string]*netloop.Call[order, nothing]{
		"limited": limitedTo3, "two a tick": twoATick, "owners": ownersOnly, "valid": valid, "admins": admins, "strict": strict, "at once": atOnce,
	} {
		k.Handle(r, func(*netloop.Tick, *netloop.Client, order) (nothing, error) { g.ran[name]++; return nothing{}, nil })
	}
	if g.open != nil {
		g.open(r)
	}
	return nil
}

// court is a room in which a test plays the transport of a client.
type court struct {
	*bare
	game    policyGame
	session *testConn
}

func newCourt(t *testing.T, cfg netloop.Config, open func(*netloop.Room)) *court {
	t.Helper()
	g := policyGame{map[string]int{}, new(map[string]any), open}
	c := &court{bare: newBareOf(t, cfg, g), game: g}
	c.session = c.enter(nil)
	c.step()
	return c
}

// enter admits a client.
func (c *court) enter(claims map[string]any) *testConn {
	c.t.Helper()
	*c.game.next = claims
	adm, err := c.server.Handler.Admit(context.Background(), hello(policies), "")
	if err != nil {
		c.t.Fatal(err)
	}
	session := newTestConn(adm)
	return session
}

// ask sends a call and returns the code of the answer, 0 for a result.
func (c *court) ask(s *testConn, method uint32, o order) netloop.Code {
	c.t.Helper()
	c.send(s, method, 0, o)
	c.step()
	codes := answers(c.t, s)
	if len(codes) != 1 {
		c.t.Fatalf("method %d: answered %v", method, codes)
	}
	return codes[0]
}

func (c *court) send(s *testConn, method uint32, stage netloop.Stage, o order) {
	c.t.Helper()
	c.push(s, transport.Arrival{
		Kind: transport.MessageArrived, Decoded: &o,
		Message: transport.Message{Method: method, Call: 7, Stage: uint8(stage)},
	})
}

// outcomes sums the outcomes of a method's messages.
func (c *court) outcomes(name string) map[string]uint64 {
	sum := map[string]uint64{}
	c.room.Queue().Counts(func(m *rpcqueue.Method, _ loop.Stage, o rpcqueue.Outcome, n uint64) {
		if m.Name == name {
			sum[o.String()] += n
		}
	})
	return sum
}

func (c *court) spawn(owner netloop.ClientID) (o *netloop.Object[ship]) {
	c.t.Helper()
	if err := c.inspect(func(t *netloop.Tick) { o = ships.Spawn(t, ship{}, netloop.OwnedBy(owner)) }); err != nil {
		c.t.Fatal(err)
	}
	return o
}

func TestPoliciesAnswerWithTheirCodeAndCountTheirOutcome(t *testing.T) {
	c := newCourt(t, netloop.Config{}, nil)
	me := netloop.ClientID(c.session.ID())
	mine, other := c.spawn(me), c.spawn(me+1)
	gone := c.spawn(me)
	if err := c.inspect(func(t *netloop.Tick) { gone.Despawn(t) }); err != nil {
		t.Fatal(err)
	}
	for i, tt := range []struct {
		k    *netloop.Call[order, nothing]
		o    order
		code netloop.Code
		out  string
	}{
		{ownersOnly, order{Ship: mine.Ref()}, 0, "ran"},
		{ownersOnly, order{Ship: other.Ref()}, netloop.CodeRefused, "not_owner"},
		{ownersOnly, order{Ship: gone.Ref()}, netloop.CodeRefused, "not_owner"},
		{ownersOnly, order{}, netloop.CodeRefused, "not_owner"},
		{valid, order{N: 5}, 0, "ran"},
		{valid, order{N: -1}, netloop.CodeInvalid, "invalid"},
		{valid, order{N: 101}, netloop.CodeGame, "invalid"},
		{admins, order{}, netloop.CodeRefused, "forbidden"},
		{strict, order{N: -1}, netloop.CodeRefused, "forbidden"}, // The role is checked first.
		{atOnce, order{}, netloop.CodeRefused, "late_dropped"},
		{unhandled, order{}, netloop.CodeUnknownMethod, "no_handler"},
	} {
		before := c.outcomes(nameOf(tt.k))[tt.out]
		if code := c.ask(c.session, idOf(tt.k), tt.o); code != tt.code {
			t.Errorf("%d: %s answers %v, want %v", i, nameOf(tt.k), code, tt.code)
		}
		if n := c.outcomes(nameOf(tt.k))[tt.out]; n != before+1 {
			t.Errorf("%d: %s: %d messages were %s", i, nameOf(tt.k), n-before, tt.out)
		}
	}
	if code := c.ask(c.session, 99, order{}); code != netloop.CodeUnknownMethod {
		t.Errorf("an unknown method answers %v", code)
	}
	if want := (map[string]int{"owners": 1, "valid": 1}); fmt.Sprint(c.game.ran) != fmt.Sprint(want) {
		t.Errorf("ran %v, want %v", c.game.ran, want)
	}
}

// A client of this module cannot send it, but another implementation can.
func TestStageThatAMethodDoesNotAllowIsRejected(t *testing.T) {
	c := newCourt(t, netloop.Config{}, nil)
	c.send(c.session, idOf(valid), netloop.PreUpdate, order{})
	c.send(c.session, idOf(valid), 0, order{})
	c.step()
	if codes := answers(t, c.session); !slices.Equal(codes, []netloop.Code{netloop.CodeStageNotAllowed, 0}) {
		t.Errorf("answered %v", codes)
	}
	if c.game.ran["valid"] != 1 {
		t.Errorf("%d ran, want the neighbour alone", c.game.ran["valid"])
	}
}

func TestChecksRunInTheOrderOfTheTable(t *testing.T) {
	c := newCourt(t, netloop.Config{}, nil)
	s := c.enter(map[string]any{netloop.RoleClaim: float64(2)}) // As decoded from a JSON token.
	c.step()
	mine := c.spawn(netloop.ClientID(s.ID()))
	for _, tt := range []struct {
		o    order
		code netloop.Code
	}{
		{order{N: -1}, netloop.CodeInvalid}, // Validate, although the ship has no owner either.
		{order{N: 1}, netloop.CodeRefused},
		{order{N: 1, Ship: mine.Ref()}, 0},
	} {
		if code := c.ask(s, idOf(strict), tt.o); code != tt.code {
			t.Errorf("%+v answers %v, want %v", tt.o, code, tt.code)
		}
	}
	if code := c.ask(c.session, idOf(strict), order{N: -1}); code != netloop.CodeRefused {
		t.Errorf("a client without the role reads %v", code)
	}
}

// A message that the server posts to itself runs; the same from a client is forbidden for each
// role.
func TestServerOnlyRunsPostedMessages(t *testing.T) {
	var from []*netloop.Client
	c := newCourt(t, netloop.Config{}, func(r *netloop.Room) {
		inner.Handle(r, func(_ *netloop.Tick, sender *netloop.Client, _ order) error { from = append(from, sender); return nil })
	})
	admin := c.enter(map[string]any{netloop.RoleClaim: 9})
	c.step()
	c.push(admin, transport.Arrival{Kind: transport.MessageArrived, Decoded: &order{}, Message: transport.Message{Method: idOf(inner)}})
	if err := inner.Post(c.played, order{}); err != nil {
		t.Fatal(err)
	}
	c.step()
	if len(from) != 1 || from[0] != nil || c.outcomes("inner")["forbidden"] != 1 || c.outcomes("inner")["ran"] != 1 {
		t.Errorf("ran for %v, %v", from, c.outcomes("inner"))
	}
}

func TestLimitsOfMethodsHoldPerClient(t *testing.T) {
	c := newCourt(t, netloop.Config{}, nil)
	other := c.enter(nil)
	c.step()
	for range 5 {
		c.send(c.session, idOf(limitedTo3), 0, order{})
		c.send(c.session, idOf(twoATick), 0, order{})
	}
	c.send(other, idOf(twoATick), 0, order{})
	c.send(other, idOf(limitedTo3), 0, order{})
	c.step()
	if c.game.ran["limited"] != 4 || c.game.ran["two a tick"] != 3 {
		t.Errorf("ran %v", c.game.ran)
	}
	var flood int
	for _, code := range answers(t, c.session) {
		if code == netloop.CodeFlood {
			flood++
		}
	}
	if flood != 5 {
		t.Errorf("%d of the 5 that were dropped were told", flood)
	}
	for range 60 { // A second grants one more.
		c.step()
	}
	c.send(c.session, idOf(limitedTo3), 0, order{})
	c.send(c.session, idOf(limitedTo3), 0, order{})
	c.step()
	if c.game.ran["limited"] != 5 {
		t.Errorf("a second later %d ran", c.game.ran["limited"])
	}
}

func TestAClientThatFloodsIsWarnedDroppedAndKicked(t *testing.T) {
	limits := netloop.RPCLimits{PerSecond: 10, Burst: 20, KickAfter: 30, Share: -1, ClientShare: -1}
	c := newCourt(t, netloop.Config{RPC: limits}, nil)
	quiet := c.enter(nil)
	c.step()
	for range 40 {
		c.send(c.session, idOf(valid), 0, order{})
	}
	c.step()
	if c.game.ran["valid"] != 40 {
		t.Errorf("%d of twice the burst ran", c.game.ran["valid"])
	}
	for range 40 {
		c.send(c.session, idOf(valid), 0, order{})
	}
	c.send(quiet, idOf(valid), 0, order{})
	c.step()
	if c.game.ran["valid"] != 41 {
		t.Errorf("%d ran; of the second flood none, and the quiet client's one", c.game.ran["valid"])
	}
	if cause, closing := c.session.Cause(); !closing || cause.Code != netloop.CodeFlood {
		t.Errorf("the client was told %v", cause)
	}
	if _, closing := quiet.Cause(); closing {
		t.Error("the quiet client was kicked too")
	}

	c.room.Report()
	for _, line := range []string{
		`netloop_rpc_limits_total{action="warn",dry="false",limit="client"} 20`,
		`netloop_rpc_limits_total{action="kick",dry="false",limit="client"} 1`,
		`netloop_rpcs_total{method="valid",outcome="client_limited",stage="unset"} 31`,
	} {
		if !c.scraped(line) {
			t.Errorf("the scrape lacks %s", line)
		}
	}

	limits.Dry = true
	c = newCourt(t, netloop.Config{RPC: limits}, nil)
	for range 200 {
		c.send(c.session, idOf(valid), 0, order{})
	}
	c.step()
	if _, closing := c.session.Cause(); c.game.ran["valid"] != 200 || closing {
		t.Errorf("in a dry run %d of 200 ran, closing %v", c.game.ran["valid"], closing)
	}
}

func TestABudgetDelaysFurtherMessages(t *testing.T) {
	c := newCourt(t, netloop.Config{RPC: netloop.RPCLimits{Budget: 10}}, nil)
	for range 25 {
		c.send(c.session, idOf(valid), 0, order{})
	}
	var ran []int
	for range 4 {
		c.step()
		ran = append(ran, c.game.ran["valid"])
	}
	if !slices.Equal(ran, []int{10, 20, 25, 25}) {
		t.Errorf("ran %v", ran)
	}
}

func TestBadPoliciesPanicWithTheRemedy(t *testing.T) {
	sc := netloop.NewSchema("bad", 1, 0)
	for want, declare := range map[string]func(){
		"Validate takes":         func() { netloop.NewRPC[ship](sc, "a", netloop.Validate(order.validate)) },
		"OwnerOnly takes":        func() { netloop.NewRPC[ship](sc, "b", netloop.OwnerOnly(order.ship)) },
		"Limit: NaN":             func() { netloop.NewRPC[ship](sc, "c", netloop.Limit(math.NaN(), 1)) },
		"a burst of 0":           func() { netloop.NewRPC[ship](sc, "d", netloop.Limit(1, 0)) },
		"LimitPerTick(0)":        func() { netloop.NewRPC[ship](sc, "e", netloop.LimitPerTick(0)) },
		"LimitPerTick(100000)":   func() { netloop.NewRPC[ship](sc, "f", netloop.LimitPerTick(100_000)) },
		"Timeout is for calls":   func() { netloop.NewRPC[ship](sc, "g", netloop.Timeout(time.Second)) },
		"ServerOnly is for RPCs": func() { netloop.NewCall[ship, ship](sc, "i", netloop.ServerOnly()) },
		"Timeout(0s)":            func() { netloop.NewCall[ship, ship](sc, "h", netloop.Timeout(0)) },
	} {
		func() {
			defer func() {
				if v := fmt.Sprint(recover()); !strings.Contains(v, want) {
					t.Errorf("recovered %q, want %q", v, want)
				}
			}()
			declare()
		}()
	}
}

func TestBadRPCLimitsNameTheirKey(t *testing.T) {
	for key, l := range map[string]netloop.RPCLimits{
		"RPC.PerSecond": {PerSecond: -2}, "RPC.Burst": {Burst: -1}, "RPC.KickAfter": {KickAfter: -2},
		"RPC.Budget": {Budget: -2}, "RPC.Answers": {Answers: 1 << 20}, "RPC.Share": {Share: 2}, "RPC.ClientShare": {ClientShare: math.NaN()},
	} {
		if _, err := netloop.New(netloop.Config{RPC: l}, policyGame{}); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%+v: error %v", l, err)
		}
	}
	if _, err := netloop.New(netloop.Config{RPC: netloop.RPCLimits{PerSecond: -1, KickAfter: -1, Budget: -1, Share: -1, ClientShare: -1}}, policyGame{ran: map[string]int{}}); err != nil {
		t.Error(err)
	}
}
