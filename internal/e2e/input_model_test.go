package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/testing/seeds"
	"github.com/netloop/netloop/netlooptest"
)

// The model of inputs. Clients with their own frame rates and clocks play over random links with
// breaks, the server drops ticks, and second programs of the players replace clients. The test
// compares the inputs that each program made for each step with the inputs that ran in it.
type inputModel struct {
	t        *testing.T
	seed     uint64
	rng      *rand.Rand
	programs []*client.Client        // by program number
	players  [3]int                  // the program of each player
	made     map[madeInput][]control // several if the step was set back
	ran      map[netloop.ClientID]*ranInputs
	absent   map[int]uint64 // by program
	fires    map[int]int    // inputs with Fire that were made, by program
	joins    map[netloop.ClientID]*netloop.Join
	taken    int    // number of replaced clients
	step     uint64 // the last step
	from     netloop.ClientID
}

type madeInput struct {
	program int
	client  netloop.ClientID
	step    uint64
}

// ranInputs are the inputs of one client that ran.
type ranInputs struct {
	program         int     // the program of the client
	step            uint64  // the last, 0 before the program's first
	last            control // the last input that ran, as it was made
	fired           int     // times
	missed          int     // consecutive misses
	applied, absent uint64
}

func (m *inputModel) handle(r *netloop.Room) {
	controls.Handle(r, m.run)
	r.OnAdmit(func(_ context.Context, j *netloop.Join) error { j.Subject = j.Token; return nil })
	r.OnJoin(func(_ *netloop.Tick, c *netloop.Client) error {
		m.ran[c.ID()], m.joins[c.ID()] = &ranInputs{program: m.program(c)}, c.Join()
		return nil
	})
	r.OnResume(func(_ *netloop.Tick, c *netloop.Client) {
		// The inputs of an earlier program, or of one that joined anew, do not count.
		if s := m.ran[c.ID()]; m.joins[c.ID()] != c.Join() {
			*s = ranInputs{program: m.program(c), applied: s.applied, absent: s.absent}
			m.joins[c.ID()] = c.Join()
			m.taken++
		}
	})
	r.On(netloop.FixedUpdate, "test.steps", func(t *netloop.Tick) {
		for c := range t.Clients() {
			if s := m.ran[c.ID()]; s.step > 0 && s.step != t.FixedStep() {
				m.t.Fatalf("seed %d: no input of client %d ran in step %d", m.seed, c.ID(), t.FixedStep())
			}
		}
	})
	r.OnLeave(func(_ *netloop.Tick, c *netloop.Client, _ *netloop.Closed) {
		if s, l := m.ran[c.ID()], c.Link(); l.Inputs != s.applied || l.InputsMissed != s.absent {
			m.t.Fatalf("seed %d: client %d: %+v ran, and %+v was counted", m.seed, c.ID(), s, l)
		}
	})
}

// run checks one call of the handler.
func (m *inputModel) run(t *netloop.Tick, from *netloop.Client, in control) {
	s := m.ran[from.ID()]
	if s.step == 0 {
		s.step = t.FixedStep() - 1
	}
	if t.FixedStep() != s.step+1 || t.FixedStep() == m.step && from.ID() <= m.from {
		m.t.Fatalf("seed %d: the input of client %d for step %d runs after those for step %d, client %d", m.seed, from.ID(), t.FixedStep(), m.step, m.from)
	}
	s.step, m.step, m.from = t.FixedStep(), t.FixedStep(), from.ID()
	if own := uint64(in.Step) == s.step; own {
		s.applied++
	} else {
		s.absent++
		m.absent[s.program]++
	}
	if in.Step > s.last.Step { // Runs for the first time, in its step or later.
		all := m.made[madeInput{s.program, from.ID(), uint64(in.Step)}]
		if i := slices.IndexFunc(all, func(c control) bool { return c.Turn == in.Turn && (!c.Fire || in.Fire) }); i < 0 || in.Step > uint32(s.step) || in.Missed > 0 {
			m.t.Fatalf("seed %d: client %d, step %d: %+v ran, of %+v", m.seed, from.ID(), s.step, in, all)
		}
		s.last, s.missed = in, 0
	} else if s.missed++; in.Step != s.last.Step || in.Turn != s.last.Turn || in.Missed != uint16(s.missed) && !in.Fire && in.Missed > 0 {
		m.t.Fatalf("seed %d: client %d, step %d: %+v ran, missed %d, after %+v", m.seed, from.ID(), s.step, in, s.missed, s.last)
	}
	if in.Fire {
		s.fired++
	}
	if s.fired > m.fires[s.program] {
		m.t.Fatalf("seed %d: client %d fires %d times, of %d that were made", m.seed, from.ID(), s.fired, m.fires[s.program])
	}
}

// program returns the number of a client's program.
func (m *inputModel) program(c *netloop.Client) (number int) {
	if err := c.Join().Params(&number); err != nil {
		m.t.Fatalf("seed %d: %v", m.seed, err)
	}
	return number
}

// join joins a new program of a player, with a random link, clock and frame rate.
func (m *inputModel) join(w *netlooptest.World, player int) {
	program := len(m.programs)
	var o []netlooptest.ClientOption
	if n := m.rng.IntN(5); n > 0 {
		o = append(o, netlooptest.FPS([]int{0, 24, 60, 144, 240}[n]))
	}
	o = append(o, netlooptest.ClientClock(time.Duration(m.rng.IntN(1e9)), m.rng.IntN(401)-200))
	c := w.JoinAs(client.Config{LostAfter: time.Second, Token: strconv.Itoa(player), Join: program}, m.link(), o...)
	m.programs, m.players[player] = append(m.programs, c), program
	turn := int8(0)
	client.Inputs(c, controls, func(t *netloop.Tick) control {
		if m.rng.IntN(6) == 0 {
			turn = int8(m.rng.IntN(256) - 128)
		}
		in := control{Step: uint32(t.FixedStep()), Turn: turn, Fire: m.rng.IntN(4) == 0}
		key := madeInput{program, c.ID(), t.FixedStep()}
		if uint64(len(m.made[key])) > c.Stats().StepsSetBack {
			m.t.Fatalf("seed %d: program %d makes two inputs for step %d", m.seed, program, t.FixedStep())
		}
		m.made[key] = append(m.made[key], in)
		if in.Fire {
			m.fires[program]++
		}
		return in
	})
}

func (m *inputModel) link() netlooptest.Link {
	l := netlooptest.Link{Delay: time.Duration(m.rng.IntN(150)) * time.Millisecond}
	if m.rng.IntN(3) > 0 {
		l.Jitter = time.Duration(m.rng.IntN(60)) * time.Millisecond
		l.Loss, l.Duplicate, l.Reorder = m.rng.Float64()/5, m.rng.Float64()/5, m.rng.Float64()/5
	}
	return l
}

// act does one random thing to a player or the server, mostly for a short time.
func (m *inputModel) act(w *netlooptest.World, player int) {
	switch c := m.programs[m.players[player]]; m.rng.IntN(8) {
	case 0:
		w.SetLink(c, m.link())
	case 1:
		w.Cut(c)
	case 2:
		w.Break(c)
	case 3:
		w.Freeze(c)
	case 4:
		w.Spend(time.Duration(m.rng.IntN(400)) * time.Millisecond)
	case 5:
		m.join(w, player)
	default:
		w.Heal(c)
		w.Thaw(c)
	}
}

// Whatever happens to links, connections, programs, frames, clocks and ticks, one input of each
// client runs in each fixed step, in order, from the program's first input on. Each is an input
// that the program made for the step or, late, for an earlier one, each once and in order, or a
// repetition; every other step counts as missed. A recording replays.
func TestInputsFollowTheModel(t *testing.T) {
	var played, applied, absent, taken uint64
	for seed := range seeds.Of(t, 200) {
		played++
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			m := &inputModel{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 17)), made: map[madeInput][]control{}, fires: map[int]int{}, ran: map[netloop.ClientID]*ranInputs{}, absent: map[int]uint64{}, joins: map[netloop.ClientID]*netloop.Join{}}
			m.play()
			taken += uint64(m.taken)
			for _, s := range m.ran {
				applied, absent = applied+s.applied, absent+s.absent
			}
		})
	}
	t.Logf("%d steps ran with their input, %d without; %d clients were replaced", applied, absent, taken)
	if played >= 20 && (applied < absent || taken < played/2) {
		t.Errorf("%d steps ran with their input, %d without; %d clients were replaced", applied, absent, taken)
	}
}

// play plays one world to its end.
func (m *inputModel) play() {
	rates := []netloop.Rate{{}, netloop.Hz(20), netloop.Hz(30), netloop.Hz(60), {Num: 50, Den: 3}}
	rate := func() netloop.Rate { return rates[m.rng.IntN(len(rates))] }
	var file bytes.Buffer
	w := netlooptest.New(m.t, game{schema: steering, script: m.handle}, netlooptest.Seed(m.seed), netlooptest.Record(&file),
		netlooptest.Room(netloop.RoomSpec{Rate: rate(), FixedRate: rate(), SendEvery: 1 + m.rng.IntN(3), KeepDropped: 3 * time.Second}))
	for player := range m.players {
		m.join(w, player)
	}
	for range 250 {
		if m.rng.IntN(10) == 0 {
			m.act(w, m.rng.IntN(len(m.players)))
		}
		w.Step(1)
	}
	w.Drain(0)
	for program, c := range m.programs {
		if told := c.Stats().InputsMissed; told > m.absent[program] {
			m.t.Fatalf("seed %d: program %d reports %d missed inputs, and %d were missed", m.seed, program, told, m.absent[program])
		}
	}
	if m.seed%8 == 1 {
		m.replay(file.Bytes())
	}
}

// replay replays a recording, in which the same inputs must run.
func (m *inputModel) replay(file []byte) {
	again := &inputModel{t: m.t, seed: m.seed, made: m.made, fires: m.fires, ran: map[netloop.ClientID]*ranInputs{}, absent: map[int]uint64{}, joins: map[netloop.ClientID]*netloop.Join{}}
	p, err := netloop.NewReplay(netloop.Config{}, game{schema: steering, script: again.handle}, bytes.NewReader(file))
	for err == nil {
		_, err = p.Step()
	}
	if !errors.Is(err, io.EOF) {
		m.t.Fatalf("seed %d: %v", m.seed, err)
	}
	for id, s := range m.ran {
		if got := again.ran[id]; got == nil || *got != *s {
			m.t.Fatalf("seed %d: client %d: %+v ran, and %+v in the replay", m.seed, id, s, got)
		}
	}
}
