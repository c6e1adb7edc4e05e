package e2e_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/seeds"
	"github.com/netloop/netloop/netlooptest"
)

// The model of inputs: clients with frames and clocks of their own play over random links that
// break and come back, while the server drops ticks. Beside it stands what each client made for
// each step, and what ran in each step; they must agree.
type inputModel struct {
	t    *testing.T
	seed uint64
	rng  *rand.Rand
	made map[madeInput]control
	ran  map[netloop.ClientID]*ranInputs
	step uint64 // that ran last
	from netloop.ClientID
}

type madeInput struct {
	client netloop.ClientID
	step   uint64
}

// ranInputs is what ran of one client.
type ranInputs struct {
	step            uint64 // the last
	last            control
	missed          int // in a row
	applied, absent uint64
}

func (m *inputModel) handle(r *netloop.Room) {
	controls.Handle(r, m.run)
	r.On(netloop.FixedUpdate, "test.steps", func(t *netloop.Tick) {
		for c := range t.Clients() {
			if s := m.ran[c.ID()]; s != nil && s.step != t.FixedStep() {
				m.t.Fatalf("seed %d: nothing of client %d ran in step %d", m.seed, c.ID(), t.FixedStep())
			}
		}
	})
	r.OnLeave(func(_ *netloop.Tick, c *netloop.Client, _ *netloop.Closed) {
		if s, l := m.ran[c.ID()], c.Link(); s != nil && (l.Inputs != s.applied || l.InputsMissed != s.absent) {
			m.t.Fatalf("seed %d: client %d: %+v ran, and %+v was counted", m.seed, c.ID(), s, l)
		}
	})
}

// run checks one call of the handler.
func (m *inputModel) run(t *netloop.Tick, from *netloop.Client, in control) {
	s := m.ran[from.ID()]
	if s == nil {
		s = &ranInputs{step: t.FixedStep() - 1}
		m.ran[from.ID()] = s
	}
	if t.FixedStep() != s.step+1 || t.FixedStep() == m.step && from.ID() <= m.from {
		m.t.Fatalf("seed %d: the input of client %d for step %d runs after those for step %d, client %d", m.seed, from.ID(), t.FixedStep(), m.step, m.from)
	}
	s.step, m.step, m.from = t.FixedStep(), t.FixedStep(), from.ID()
	want, made := m.made[madeInput{from.ID(), s.step}]
	if in.Missed == 0 {
		s.applied, s.missed, s.last = s.applied+1, 0, in
	} else {
		s.absent++
		s.missed++
		want, made = s.last, true
		want.Fire, want.Missed = false, uint16(s.missed)
	}
	if !made || in != want {
		m.t.Fatalf("seed %d: client %d, step %d: %+v ran, want %+v (%t)", m.seed, from.ID(), s.step, in, want, made)
	}
}

// join lets a client play over some link, with some clock and frame rate.
func (m *inputModel) join(w *netlooptest.World) *client.Client {
	var o []netlooptest.ClientOption
	if n := m.rng.IntN(5); n > 0 {
		o = append(o, netlooptest.FPS([]int{0, 24, 60, 144, 240}[n]))
	}
	o = append(o, netlooptest.ClientClock(time.Duration(m.rng.IntN(1e9)), m.rng.IntN(401)-200))
	c := w.JoinAs(client.Config{LostAfter: time.Second}, m.link(), o...)
	turn := int8(0)
	client.Inputs(c, controls, func(t *netloop.Tick) control {
		if m.rng.IntN(6) == 0 {
			turn = int8(m.rng.IntN(256) - 128)
		}
		in := control{Step: uint32(t.FixedStep()), Turn: turn, Fire: m.rng.IntN(4) == 0}
		key := madeInput{c.ID(), t.FixedStep()}
		if _, twice := m.made[key]; twice {
			m.t.Fatalf("seed %d: client %d makes two inputs for step %d", m.seed, c.ID(), t.FixedStep())
		}
		m.made[key] = in
		return in
	})
	return c
}

func (m *inputModel) link() netlooptest.Link {
	l := netlooptest.Link{Delay: time.Duration(m.rng.IntN(150)) * time.Millisecond}
	if m.rng.IntN(3) > 0 {
		l.Jitter = time.Duration(m.rng.IntN(60)) * time.Millisecond
		l.Loss, l.Duplicate, l.Reorder = m.rng.Float64()/5, m.rng.Float64()/5, m.rng.Float64()/5
	}
	return l
}

// act does something to a client, or to the server; most of it does not last long.
func (m *inputModel) act(w *netlooptest.World, c *client.Client) {
	switch m.rng.IntN(7) {
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
	default:
		w.Heal(c)
		w.Thaw(c)
	}
}

// Whatever happens to links, connections, frames, clocks and ticks, each client's inputs run one
// in each fixed step and in order, and what runs is what the client made for the step, or counts
// as missed. A recording of it replays.
func TestInputsRunAsTheyWereMade(t *testing.T) {
	var played, applied, absent uint64
	for seed := range seeds.Of(t, 200) {
		played++
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			m := &inputModel{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 17)), made: map[madeInput]control{}, ran: map[netloop.ClientID]*ranInputs{}}
			m.play()
			for _, s := range m.ran {
				applied, absent = applied+s.applied, absent+s.absent
			}
		})
	}
	t.Logf("%d steps ran with their input, %d without", applied, absent)
	if played >= 20 && applied < absent {
		t.Errorf("%d steps ran without their input, and only %d with it", absent, applied)
	}
}

// play plays one world to its end.
func (m *inputModel) play() {
	rates := []netloop.Rate{{}, netloop.Hz(20), netloop.Hz(30), netloop.Hz(60), {Num: 50, Den: 3}}
	rate := func() netloop.Rate { return rates[m.rng.IntN(len(rates))] }
	var file bytes.Buffer
	w := netlooptest.New(m.t, game{schema: steering, script: m.handle}, netlooptest.Seed(m.seed), netlooptest.Record(&file),
		netlooptest.Room(netloop.RoomSpec{Rate: rate(), FixedRate: rate(), SendEvery: 1 + m.rng.IntN(3), KeepDropped: 3 * time.Second}))
	clients := []*client.Client{m.join(w), m.join(w), m.join(w)}
	for range 250 {
		if m.rng.IntN(10) == 0 {
			m.act(w, clients[m.rng.IntN(len(clients))])
		}
		w.Step(1)
	}
	w.Drain(0)
	if m.seed%8 == 1 {
		m.replay(file.Bytes())
	}
}

// replay plays a recording again, whose inputs must run as they did.
func (m *inputModel) replay(file []byte) {
	again := &inputModel{t: m.t, seed: m.seed, made: m.made, ran: map[netloop.ClientID]*ranInputs{}}
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
