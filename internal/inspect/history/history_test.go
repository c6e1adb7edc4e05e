package history_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/examples/arena"
	arenav1 "github.com/netloop/netloop/examples/arena/proto/arena/v1"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/inspect"
	"github.com/netloop/netloop/internal/inspect/history"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/testing/seeds"
	"github.com/netloop/netloop/netlooptest"
)

// opening is a game that calls a function with its room.
type opening struct {
	netloop.Game
	fn func(*room.Room)
}

func (g opening) Open(r *netloop.Room) error {
	g.fn(bridge.Netloop.Room(r))
	return g.Game.Open(r)
}

// recordArena plays the arena with clients that join, act and leave, and returns its recording. It
// calls each function with the room, before its first tick.
func recordArena(t testing.TB, seed uint64, ticks, players int, opened ...func(*room.Room)) []byte {
	t.Helper()
	var file bytes.Buffer
	game := opening{arena.New(), func(r *room.Room) {
		for _, fn := range opened {
			fn(r)
		}
	}}
	w := netlooptest.New(t, game, netlooptest.Seed(seed), netlooptest.Record(&file))
	rng := rand.New(rand.NewPCG(seed, 1))
	var in []*arena.Control
	var clients []*client.Client
	for n := range ticks {
		if n%20 == 0 && len(clients) < players {
			c := w.Join("token", arena.JoinParams{Name: fmt.Sprint("player ", n)}, netlooptest.Link{Delay: 20 * time.Millisecond, Loss: 0.02})
			control := new(arena.Control)
			arena.Play(c, func(*netloop.Tick) arena.Control { return *control })
			clients, in = append(clients, c), append(in, control)
		}
		if n%250 == 249 {
			_ = clients[0].Close()
			clients, in = clients[1:], in[1:]
		}
		for i, c := range clients {
			if n%5 != 0 || c.State().Phase != client.Playing {
				continue
			}
			in[i].Thrust, in[i].Turn, in[i].Fire = rng.IntN(3) > 0, int8(rng.IntN(3)-1), rng.IntN(6) == 0
			if rng.IntN(40) == 0 {
				client.Send(c, arena.Say, &arenav1.Say{Text: fmt.Sprintf("line %d", n)})
			}
		}
		w.Step(1)
	}
	return file.Bytes()
}

// arenaFile returns a recording of some seconds.
func arenaFile(t testing.TB) []byte {
	t.Helper()
	made.Do(func() { made.file = recordArena(t, 5, 400, 6) })
	if made.file == nil {
		t.Fatal("the recording could not be made")
	}
	return made.file
}

var made struct {
	sync.Once
	file []byte
}

// replayOf returns a function that opens the replay of a recording of a game.
func replayOf(g func() netloop.Game) func(io.ReadSeeker) (*room.Replay, error) {
	return func(f io.ReadSeeker) (*room.Replay, error) {
		r, err := netloop.NewReplay(netloop.Config{}, g(), f)
		if err != nil {
			return nil, err
		}
		return bridge.Netloop.Replay(r), nil
	}
}

func newArena() netloop.Game { return arena.New() }

// open opens a recording of the arena, and closes it at the end of the test.
func open(t testing.TB, file []byte, change ...func(*history.Config)) *history.Recording {
	t.Helper()
	cfg := history.Config{Name: "test.rec", File: bytes.NewReader(file), Size: int64(len(file)), Replay: replayOf(newArena), Temp: t.TempDir()}
	for _, fn := range change {
		fn(&cfg)
	}
	r, err := history.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// opened is open after the end of the replay.
func opened(t testing.TB, file []byte, change ...func(*history.Config)) *history.Recording {
	t.Helper()
	r := open(t, file, change...)
	r.Wait()
	return r
}

// A state of the history is that of the room after the tick, in every object and field; and the
// difference of two states turns one into the other.
func TestStateOfATickIsThatOfAReplay(t *testing.T) {
	seeds.OneGoroutine(t)
	file := arenaFile(t)
	r := opened(t, file)
	if out := r.Outcome(); out.State != history.Identical || out.Tick != 400 {
		t.Fatalf("outcome %+v", out)
	}
	again, err := replayOf(newArena)(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	last := map[string]string{}
	seen := 0
	for tick := uint64(1); ; tick++ {
		if _, err := again.Step(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if rng.IntN(4) > 0 {
			continue
		}
		want := map[string]string{}
		for o := range again.Room().World().Captured() {
			v := o.Newest()
			want[o.ID().String()] = fmt.Sprintf("%s %d %s", o.Class().Name(), o.WireClass().Owner(&v), o.Class().AppendJSON(nil, &v, 0))
		}
		a, err := r.State(tick, "", 0)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, o := range a.Objects {
			got[o.ID] = fmt.Sprintf("%s %d %s", o.Class, o.Owner, o.Values)
		}
		if a.Tick != tick || a.More != 0 || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("tick %d (%d, more %d):\ngot  %v\nwant %v", tick, a.Tick, a.More, got, want)
		}
		checkDiff(t, r, last, got, tick, uint64(seen))
		last, seen = got, int(tick)
	}
	bytes, keys := r.Size()
	t.Logf("%d bytes, %d keyframes, for a recording of %d bytes", bytes, keys, len(file))
	if keys < 3 {
		t.Errorf("%d keyframes, want some", keys)
	}
}

// checkDiff compares the answer about the difference of two ticks with their objects.
func checkDiff(t *testing.T, r *history.Recording, was, now map[string]string, tick, with uint64) {
	t.Helper()
	if with == 0 {
		return
	}
	d, err := r.Diff(tick, with)
	if err != nil || d.With != with || d.More != 0 {
		t.Fatalf("diff %d of %d: %+v: %v", tick, with, d, err)
	}
	added, removed, changed := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, o := range d.Added {
		added[o.ID] = true
	}
	for _, o := range d.Removed {
		removed[o.ID] = true
	}
	for _, o := range d.Changed {
		changed[o.ID] = true
		for _, f := range o.Fields {
			if string(f.Was) == string(f.Now) {
				t.Errorf("%s.%s did not change from %s", o.ID, f.Field, f.Was)
			}
		}
	}
	for id := range was {
		if _, ok := now[id]; ok == removed[id] || ok && (was[id] != now[id]) != changed[id] {
			t.Fatalf("diff %d of %d: object %s was %q, is %q, removed %v, changed %v", tick, with, id, was[id], now[id], removed[id], changed[id])
		}
	}
	for id := range now {
		if _, ok := was[id]; ok == added[id] {
			t.Fatalf("diff %d of %d: object %s added %v", tick, with, id, added[id])
		}
	}
}

// The ticks of a comparison are those in which it becomes true, and "changed" those with another
// value, for any part of the recording and any number of answers.
func TestFindIsAWalkOverAllStates(t *testing.T) {
	seeds.OneGoroutine(t)
	r := opened(t, arenaFile(t))
	var states [][]inspect.Object
	for tick := uint64(1); tick <= 400; tick++ {
		a, err := r.State(tick, "ship", 0)
		if err != nil {
			t.Fatal(err)
		}
		states = append(states, a.Objects)
	}
	const turn, score, x = 7, 13, 0
	number := func(raw json.RawMessage, field int) (f float64) {
		var values []any
		if err := json.Unmarshal(raw, &values); err != nil {
			t.Fatal(err)
		}
		f, _ = values[field].(float64)
		return f
	}
	for q, holds := range map[string]func(json.RawMessage) bool{
		"ship.Turn == 1":  func(v json.RawMessage) bool { return number(v, turn) == 1 },
		"ship.Turn < 0":   func(v json.RawMessage) bool { return number(v, turn) < 0 },
		"ship.X >= 2048":  func(v json.RawMessage) bool { return number(v, x) >= 2048 },
		"ship.Score != 0": func(v json.RawMessage) bool { return number(v, score) != 0 },
	} {
		var want []string
		was := map[string]bool{}
		for i, objects := range states {
			is := map[string]bool{}
			for _, o := range objects {
				is[o.ID] = holds(o.Values)
				if is[o.ID] && !was[o.ID] {
					want = append(want, fmt.Sprintf("%d %s", i+1, o.ID))
				}
			}
			was = is
		}
		if got := findAll(t, r, q); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s:\ngot  %v\nwant %v", q, got, want)
		}
	}
	id := states[100][0].ID
	for name, field := range map[string]int{"X": x, "Turn": turn} {
		var want []string
		for i := 1; i < len(states); i++ {
			for _, o := range states[i] {
				for _, p := range states[i-1] {
					if o.ID == id && p.ID == id && number(o.Values, field) != number(p.Values, field) {
						want = append(want, fmt.Sprintf("%d %s", i+1, id))
					}
				}
			}
		}
		if got := findAll(t, r, "ship["+id+"]."+name+" changed"); fmt.Sprint(got) != fmt.Sprint(want) || len(want) == 0 {
			t.Errorf("changes of %s:\ngot  %v\nwant %v", name, got, want)
		}
	}
}

// findAll searches the recording in several parts, at random ticks, and returns tick and object.
func findAll(t *testing.T, r *history.Recording, q string) (list []string) {
	t.Helper()
	rng := rand.New(rand.NewPCG(uint64(len(q)), 9))
	for from := uint64(1); from <= 400; {
		to := from + rng.Uint64N(300)
		a, err := r.Find(context.Background(), q, from, to)
		if err != nil || a.Next != 0 || a.More != 0 {
			t.Fatalf("%s: %v, next %d", q, err, a.Next)
		}
		for _, f := range a.Found {
			list = append(list, fmt.Sprintf("%d %s", f.Tick, f.Object))
		}
		from = to + 1
	}
	return list
}

// openedWithSay returns the recording of the arena after its replay, and its method say.
func openedWithSay(t *testing.T) (*history.Recording, *schema.Method) {
	t.Helper()
	var replayed *room.Room
	game := opening{arena.New(), func(r *room.Room) { replayed = r }}
	r := opened(t, arenaFile(t), func(c *history.Config) { c.Replay = replayOf(func() netloop.Game { return game }) })
	say, ok := replayed.Schema().MethodNamed("say")
	if !ok {
		t.Fatal("the arena has no method say")
	}
	return r, say
}

// Messages and inputs of a tick are those that the clients sent.
func TestMessagesOfATick(t *testing.T) {
	r, say := openedWithSay(t)
	ticks, err := r.Ticks(1, 400, 400)
	if err != nil {
		t.Fatal(err)
	}
	said := 0
	for i, n := range ticks.Methods["say"] {
		if n == 0 {
			continue
		}
		a, err := r.Messages(ticks.Ticks[i])
		if err != nil {
			t.Fatal(err)
		}
		say.Secret = true
		hidden, err := r.Messages(ticks.Ticks[i])
		say.Secret = false
		if err != nil {
			t.Fatal(err)
		}
		for j, m := range a.Arrivals {
			if m.Method == "say" {
				said++
				if !strings.Contains(string(m.Value), "line ") || m.Client == 0 || m.Kind != "message" {
					t.Errorf("message %+v: %s", m, m.Value)
				}
				m.Value, m.Text = nil, "the game keeps this method's messages secret"
				if !reflect.DeepEqual(hidden.Arrivals[j], m) {
					t.Errorf("secret message %+v, want %+v", hidden.Arrivals[j], m)
				}
			}
		}
	}
	if said < 5 {
		t.Errorf("%d messages, want more", said)
	}
	a, err := r.Messages(300)
	if err != nil {
		t.Fatal(err)
	}
	inputs := 0
	for _, m := range a.Arrivals {
		for _, in := range m.Inputs {
			var control struct {
				Thrust, Fire *bool
				Turn         *int
			}
			if err := json.Unmarshal(in.Value, &control); err != nil || control.Turn == nil || in.Step < 250 || in.Step > 350 {
				t.Errorf("input %d: %s: %v", in.Step, in.Value, err)
			}
			inputs++
		}
	}
	if inputs == 0 {
		t.Error("no input")
	}
}

// The counts of a few ticks, from the records, and those of many, from the index, have equal sums.
func TestLanesOfFewAndOfManyTicksAgree(t *testing.T) {
	seeds.OneGoroutine(t)
	r := opened(t, recordArena(t, 8, 2100, 2))
	sum := func(list []uint32) (n uint32) {
		for _, v := range list {
			n += v
		}
		return n
	}
	all, err := r.Ticks(0, 0, 10)
	if err != nil || all.Every%64 != 0 || len(all.Ticks) > 10 {
		t.Fatalf("%d rows of %d ticks: %v", len(all.Ticks), all.Every, err)
	}
	var inputs, messages, joins, leaves uint32
	byClient := map[uint64]uint32{}
	for from := uint64(1); from <= 2100; from += 300 {
		part, err := r.Ticks(from, from+299, 300)
		if err != nil || part.Every != 1 || len(part.Ticks) != 300 {
			t.Fatalf("%d rows of %d ticks: %v", len(part.Ticks), part.Every, err)
		}
		inputs, messages = inputs+sum(part.Inputs), messages+sum(part.Messages)
		joins, leaves = joins+sum(part.Joins), leaves+sum(part.Leaves)
		for _, l := range part.Lanes {
			byClient[l.Client] += sum(l.Inputs)
		}
	}
	if got := []uint32{sum(all.Inputs), sum(all.Messages), sum(all.Joins), sum(all.Leaves)}; fmt.Sprint(got) != fmt.Sprint([]uint32{inputs, messages, joins, leaves}) || joins < 4 || leaves < 2 {
		t.Errorf("inputs, messages, joins, leaves %v, want %v", got, []uint32{inputs, messages, joins, leaves})
	}
	for _, l := range all.Lanes {
		if sum(l.Inputs) != byClient[l.Client] || byClient[l.Client] == 0 {
			t.Errorf("client %d: %d inputs, want %d", l.Client, sum(l.Inputs), byClient[l.Client])
		}
	}
}

// BenchmarkReplay replays half a minute of the arena with 20 players: a comparison of all ticks, as
// by server replay, and with a history, as by server inspect. The figure is the ratio of game time
// to real time.
func BenchmarkReplay(b *testing.B) {
	const ticks = 1800
	file := recordArena(b, 1, ticks, 20)
	bench := func(name string, replay func(b *testing.B)) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				replay(b)
			}
			b.ReportMetric(float64(b.N)*ticks/60/b.Elapsed().Seconds(), "×real-time")
		})
	}
	bench("compare", func(b *testing.B) {
		p, err := netloop.NewReplay(netloop.Config{}, newArena(), bytes.NewReader(file))
		if err != nil {
			b.Fatal(err)
		}
		for _, err := range p.Ticks() {
			if err != nil {
				b.Fatal(err)
			}
		}
	})
	bench("history", func(b *testing.B) {
		if out := opened(b, file).Outcome(); out.State != history.Identical || out.Tick != ticks {
			b.Fatalf("outcome %+v", out)
		}
	})
}
