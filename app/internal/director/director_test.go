package director_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"google.golang.org/protobuf/proto"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/app/internal/director"
	"github.com/netloop/netloop/cluster"
	"github.com/netloop/netloop/internal/admin"
	"github.com/netloop/netloop/internal/membership"
	"github.com/netloop/netloop/internal/transport"
	clusterv1 "github.com/netloop/netloop/proto/netloop/cluster/v1"
)

// bed is a cluster in memory with a director.
type bed struct {
	*testing.T
	hub *cluster.Memory
	now time.Duration
	d   *director.Director
}

func newBed(t *testing.T) *bed {
	b := &bed{T: t}
	b.hub = cluster.NewMemory(0, func() time.Duration { return b.now })
	m := b.member("director", cluster.Server{ID: "director", Region: "eu"}, func() cluster.Load { return cluster.Load{Draining: true} })
	b.d = director.New(m, func() time.Duration { return b.now })
	return b
}

func (b *bed) member(_ string, self cluster.Server, load func() cluster.Load, handle ...func(*membership.Member)) *membership.Member {
	b.Helper()
	m := membership.New(membership.Config{
		Via: b.hub.Member(), Load: load, Now: func() time.Duration { return b.now }, Log: slog.New(slog.DiscardHandler), Lost: func(string, cluster.Epoch) {},
	})
	for _, h := range handle {
		h(m)
	}
	if err := m.Join(b.Context(), self); err != nil {
		b.Fatal(err)
	}
	return m
}

// server is a server whose rooms are numbers of free seats.
type server struct {
	m     *membership.Member
	rooms map[string]*clusterv1.Entry
	most  int // rooms
}

func (b *bed) server(id, region string, most int) *server {
	s := &server{rooms: map[string]*clusterv1.Entry{}, most: most}
	load := func() cluster.Load { return cluster.Load{Rooms: len(s.rooms), MaxRooms: most, MaxClients: 100} }
	self := cluster.Server{ID: id, Region: region, Addresses: []cluster.Address{{Carrier: "quic", Addr: id + ":4433", Hashes: [][]byte{make([]byte, 32)}}}}
	s.m = b.member(id, self, load, func(m *membership.Member) {
		membership.Handle(m, "open", func(_ context.Context, _ string, q *clusterv1.OpenRoom) (proto.Message, error) {
			var spec netloop.RoomSpec
			if err := json.Unmarshal(q.GetSpec(), &spec); err != nil {
				return nil, err
			}
			s.rooms[spec.Name] = &clusterv1.Entry{Kind: []byte(spec.Kind), MaxClients: 4}
			return &clusterv1.RoomOpened{}, nil
		})
		membership.Handle(m, "reserve", func(_ context.Context, _ string, q *clusterv1.Reserve) (proto.Message, error) {
			r := s.rooms[string(q.GetRoom())]
			if r == nil {
				return nil, &transport.Refusal{Code: transport.CodeRoomUnknown, Text: "no such room"}
			}
			if r.Players+q.GetSeats() > r.MaxClients {
				return nil, &transport.Refusal{Code: transport.CodeFull, Text: "full"}
			}
			r.Players += q.GetSeats()
			answer := &clusterv1.Reserved{}
			for i := range q.GetSeats() {
				answer.Tickets = append(answer.Tickets, fmt.Appendf(nil, "%d@%s", i, q.GetRoom()))
			}
			return answer, nil
		})
	})
	return s
}

// settle announces the rooms of servers, and lets the director see them.
func (b *bed) settle(all ...*server) {
	b.Helper()
	for _, s := range all {
		for name, entry := range s.rooms {
			data, err := proto.Marshal(entry)
			if err != nil || !s.m.Announce(name, data) {
				b.Fatal(err)
			}
		}
	}
	b.now += cluster.BoardInterval
	b.hub.Settle()
	b.d.Refresh()
}

// match requests seats, and returns the room with its server.
func (b *bed) match(q director.Request) string {
	b.Helper()
	q.TTL = time.Second
	m, err := b.d.Match(b.Context(), q)
	if err != nil {
		return err.Error()
	}
	if len(m.Tickets) != q.Seats || len(m.Addresses) != 1 || m.Addresses[0].Address != m.Server+":4433" {
		b.Errorf("%+v for %+v", m, q)
	}
	return m.Server + " " + m.Room
}

// The fullest room that fits is found first, then rooms opened lately, and a new one opens where
// most is free.
func TestMatchFindsOrOpensARoom(t *testing.T) {
	b := newBed(t)
	x, y := b.server("x", "eu", 10), b.server("y", "us", 10)
	x.rooms["oak"] = &clusterv1.Entry{Kind: []byte("table"), Players: 1, MaxClients: 4}
	x.rooms["elm"] = &clusterv1.Entry{Kind: []byte("table"), Players: 2, MaxClients: 4}
	x.rooms["hall"] = &clusterv1.Entry{Kind: []byte("lobby"), Players: 3, MaxClients: 4}
	y.rooms["far"] = &clusterv1.Entry{Kind: []byte("table"), Players: 3, MaxClients: 4}
	x.rooms["locked"] = &clusterv1.Entry{Kind: []byte("table"), Players: 3, MaxClients: 4, Unlisted: true}
	b.settle(x, y)
	for _, c := range []struct {
		q    director.Request
		want string
	}{
		{director.Request{Kind: "table", Seats: 2, Region: "eu"}, "x elm"},
		{director.Request{Kind: "table", Seats: 2, Region: "eu"}, "x oak"}, // elm is full by now.
		{director.Request{Kind: "table", Seats: 1}, "y far"},
		{director.Request{Kind: "lobby", Seats: 1}, "x hall"},
	} {
		if got := b.match(c.q); got != c.want {
			t.Errorf("%+v gets %s, want %s", c.q, got, c.want)
		}
	}
	first := b.match(director.Request{Kind: "table", Seats: 2, Region: "us"})
	if !strings.HasPrefix(first, "y table-") {
		t.Errorf("a new room is %s", first)
	}
	if again := b.match(director.Request{Kind: "table", Seats: 2, Region: "us"}); again != first {
		t.Errorf("the next two are in %s, not %s", again, first)
	}
	if next := b.match(director.Request{Kind: "table", Seats: 2, Region: "us"}); next == first || !strings.HasPrefix(next, "y ") {
		t.Errorf("two more are in %s", next)
	}
	if got := b.match(director.Request{Kind: "table", Seats: 1, Region: "asia"}); got != "no server of the region has room for another one" {
		t.Error(got)
	}
	if got := b.match(director.Request{Kind: "table", Seats: 200, Region: "eu"}); got != "full" {
		t.Error(got)
	}
	b.hub.Partition("x", 1)
	b.now += cluster.SuspectBeats * cluster.Beat
	if got := b.match(director.Request{Kind: "lobby", Seats: 1, Region: "eu"}); !strings.HasPrefix(got, "no server") {
		t.Errorf("a suspect server's room is offered: %s", got)
	}
}

// A server that does not answer costs a request half a second, and not all of its time.
func TestMatchPassesAServerThatHangs(t *testing.T) {
	b := newBed(t)
	x, y := b.server("x", "eu", 10), b.server("y", "eu", 10)
	for i := range 3 {
		x.rooms[fmt.Sprint("oak", i)] = &clusterv1.Entry{Kind: []byte("table"), Players: 3, MaxClients: 4}
	}
	y.rooms["elm"] = &clusterv1.Entry{Kind: []byte("table"), Players: 1, MaxClients: 4}
	b.settle(x, y)
	b.hub.Freeze("x", true)
	if got := b.match(director.Request{Kind: "table", Seats: 1}); got != "y elm" {
		t.Errorf("beside a server that hangs: %s", got)
	}
}

// Each answer has the form that deploy/director.openapi.json describes, and so have the parameters.
func TestAnswersHaveTheDescribedForm(t *testing.T) {
	text, err := os.ReadFile("../../../deploy/director.openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var api struct {
		Paths map[string]map[string]struct {
			Parameters []struct {
				Name string `json:"name"`
			} `json:"parameters"`
			Responses map[string]struct {
				Content map[string]struct {
					Schema struct {
						Ref string `json:"$ref"`
					} `json:"schema"`
				} `json:"content"`
			} `json:"responses"`
		} `json:"paths"`
		Components struct {
			Schemas json.RawMessage `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(text, &api); err != nil {
		t.Fatal(err)
	}
	b := newBed(t)
	x := b.server("x", "eu", 10)
	x.rooms["oak"] = &clusterv1.Entry{Kind: []byte("table"), MaxClients: 4}
	b.settle(x)
	if len(api.Paths) != len(b.d.Routes()) {
		t.Errorf("%d paths are described, of %d", len(api.Paths), len(b.d.Routes()))
	}
	for _, r := range b.d.Routes() {
		method, answer := "get", r.Read
		if r.Post != nil {
			method, answer = "post", r.Post
		}
		described := api.Paths[r.Path][method]
		example, err := url.ParseQuery(strings.TrimPrefix(r.Query, "?"))
		if err != nil || len(example) != len(described.Parameters) {
			t.Errorf("%s has the parameters %v, described are %v", r.Path, example, described.Parameters)
		}
		for _, p := range described.Parameters {
			if !example.Has(p.Name) {
				t.Errorf("%s does not know %s", r.Path, p.Name)
			}
		}
		got, err := answer(t.Context(), example)
		if err != nil {
			t.Fatal(r.Path, err)
		}
		name := strings.TrimPrefix(described.Responses["200"].Content["application/json"].Schema.Ref, "#/components/schemas/")
		form := fmt.Appendf(nil, `{"$ref": "#/$defs/%s", "$defs": %s}`, name, bytes.ReplaceAll(api.Components.Schemas, []byte("#/components/schemas/"), []byte("#/$defs/")))
		fits(t, r.Path, form, got)
	}
}

// fits checks a value against a JSON schema.
func fits(t *testing.T, what string, form []byte, v any) {
	t.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal(form, &s); err != nil {
		t.Fatal(what, err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(what, err)
	}
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(what, err)
	}
	var plain any
	if err := json.Unmarshal(text, &plain); err != nil {
		t.Fatal(what, err)
	}
	if err := resolved.Validate(plain); err != nil {
		t.Errorf("%s: %v\n%s", what, err, text)
	}
	damaged, ok := plain.(map[string]any)
	if !ok {
		t.Fatal(what, plain)
	}
	damaged["unknown"] = 1
	if resolved.Validate(damaged) == nil {
		t.Errorf("%s: the description allows everything", what)
	}
}

// Parameters beyond their range are refused in words, with status 400.
func TestParametersOfRequests(t *testing.T) {
	b := newBed(t)
	match, rooms := b.d.Routes()[0].Post, b.d.Routes()[1].Read
	for _, c := range []struct {
		ask   func(context.Context, url.Values) (any, error)
		query string
		want  string
	}{
		{match, "", "kind: "},
		{match, "kind=" + strings.Repeat("k", 65), "kind: "},
		{match, "kind=a&seats=0", "seats: use 1 to 256"},
		{match, "kind=a&seats=257", "seats: use 1 to 256"},
		{match, "kind=a&seats=x", "seats: use 1 to 256"},
		{match, "kind=a&ttl=2h", "ttl: "},
		{match, "kind=a&ttl=0s", "ttl: "},
		{match, "kind=a&spectator=maybe", "spectator: "},
		{match, "kind=a&max_clients=10001", "max_clients: "},
		{match, "kind=a&params={", "params: "},
		{match, "kind=a&params=" + strings.Repeat("1", 4097), "params: "},
		{rooms, "limit=0", "limit: "},
	} {
		query, err := url.ParseQuery(c.query)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.ask(t.Context(), query)
		var refused *admin.Refusal
		if !errors.As(err, &refused) || refused.Status != http.StatusBadRequest || !strings.HasPrefix(refused.Text, c.want) {
			t.Errorf("%.40s: %v, want %s", c.query, err, c.want)
		}
	}
}
