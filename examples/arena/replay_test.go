package arena_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/examples/arena"
	arenav1 "github.com/netloop/netloop/examples/arena/proto/arena/v1"
	"github.com/netloop/netloop/netlooptest"
)

// prize is a payment of the bank below.
type prize struct {
	Score int32
	Names map[string]int
}

// errEmpty is an error that the game compares by identity.
var errEmpty = errors.New("the bank is empty")

// bank is the arena with a bank: work on another goroutine decides the leader's prize. The time of
// its result depends on the scheduler.
type bank struct{ *arena.Game }

func (b bank) Open(r *netloop.Room) error {
	if err := b.Game.Open(r); err != nil {
		return err
	}
	r.OnAdmit(func(_ context.Context, j *netloop.Join) error {
		j.Claims = map[string]any{"bonus": 2}
		return nil
	})
	r.On(netloop.PostLateUpdate, "bank.pay", func(t *netloop.Tick) {
		if t.Number()%7 != 0 {
			return
		}
		n := t.Number()
		netloop.Go(t, func(context.Context) (prize, error) {
			if rand.IntN(4) == 0 {
				return prize{}, fmt.Errorf("asking: %w", errEmpty)
			}
			return prize{Score: rand.Int32N(100), Names: map[string]int{"asked": int(n)}}, nil
		}, func(t *netloop.Tick, p prize, err error) {
			for o := range arena.Ships.All(t) {
				c, ok := t.Client(o.Owner())
				if !ok {
					continue
				}
				if errors.Is(err, errEmpty) {
					p.Score = -1
				}
				o.Edit(t).Score += p.Score * int32(c.Join().Claims["bonus"].(int)+p.Names["asked"]%3)
				break
			}
		})
	})
	return nil
}

// player is a client that acts at random times.
type player struct {
	c    *client.Client
	in   *arena.Control
	said int
}

func (p *player) act(rng *rand.Rand) {
	if p.c.State().Phase != client.Playing {
		return
	}
	p.in.Thrust, p.in.Turn, p.in.Fire = rng.IntN(3) > 0, int8(rng.IntN(3)-1), rng.IntN(6) == 0
	switch rng.IntN(6) {
	case 1:
		p.said++
		client.Send(p.c, arena.Say, &arenav1.Say{Text: fmt.Sprintf("line %d", p.said)})
	case 2:
		client.Call(p.c, arena.Standings, arena.StandingsQuery{Top: 5}, func(*netloop.Tick, arena.StandingsReply, error) {})
	}
}

// record plays the arena over lossy links, with joins and leaves, and returns the recording.
func record(t *testing.T, g netloop.Game, seed uint64, ticks int) []byte {
	t.Helper()
	var file bytes.Buffer
	w := netlooptest.New(t, g, netlooptest.Seed(seed), netlooptest.Record(&file))
	rng := rand.New(rand.NewPCG(seed, 1))
	var players []*player
	for n := range ticks {
		switch {
		case n%60 == 0 && len(players) < 8:
			l := netlooptest.Link{Delay: time.Duration(rng.IntN(60)) * time.Millisecond, Jitter: 10 * time.Millisecond, Loss: 0.1, Duplicate: 0.05, Reorder: 0.05}
			c := w.Join("token", arena.JoinParams{Name: fmt.Sprint("player ", n)}, l)
			players = append(players, &player{c: c, in: hold(c)})
		case n%150 == 149:
			if p := players[0]; n%300 == 299 {
				w.Drop(p.c) // Without a close frame.
			} else {
				_ = p.c.Close()
			}
			players = players[1:]
		}
		for _, p := range players {
			if n%5 == 0 {
				p.act(rng)
			}
		}
		w.Step(1)
	}
	return file.Bytes()
}

func TestReplayOfTheArenaIsIdentical(t *testing.T) {
	ticks, seeds := 1200, uint64(3)
	if testing.Short() {
		ticks, seeds = 300, 1
	}
	for seed := range seeds {
		file := record(t, bank{arena.New()}, seed+1, ticks)
		p, err := netloop.NewReplay(netloop.Config{}, bank{arena.New()}, bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		states := map[uint64]bool{}
		n := 0
		for ; ; n++ {
			tick, err := p.Step()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("seed %d: %v", seed+1, err)
			}
			states[tick.State] = true
		}
		if n != ticks || len(states) < ticks*9/10 {
			t.Fatalf("seed %d: %d ticks were replayed, with %d states; want %d, and changing states", seed+1, n, len(states), ticks)
		}
		t.Logf("seed %d: %d ticks, %d bytes", seed+1, n, len(file))
	}
}

// The game's code and settings are part of a replay: another game diverges, and the replay reports
// the tick, and the object: a rock is missing.
func TestReplayWithOtherSettingsDiverges(t *testing.T) {
	file := record(t, bank{arena.New()}, 4, 200)
	g := arena.New()
	g.Config().(*arena.Config).Rocks = 99
	p, err := netloop.NewReplay(netloop.Config{}, bank{g}, bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Step()
	var d *netloop.Divergence
	if !errors.As(err, &d) || d.Tick != 1 || !strings.HasPrefix(d.What, "the state in rock.(owner), rock.X, rock.Y, ") || !strings.HasSuffix(d.What, "which the replay does not have") {
		t.Fatalf("error %v", err)
	}
}
