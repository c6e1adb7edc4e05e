package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/match"
	"github.com/netloop/netloop/persist"
	"github.com/netloop/netloop/phase"
)

// game is the game of a story. Its rooms act only on commands and on messages of clients, so that
// a recording contains all that they depend on. They report facts to the play, and read none.
type game struct{ p *play }

// openerGame also opens rooms for clients that ask for unknown names.
type openerGame struct{ game }

func (g game) Schema() *netloop.Schema { return g.p.d.schema }

func (openerGame) OpenFor(_ context.Context, name string, _ *netloop.Join) (netloop.RoomSpec, error) {
	if len(name) == 0 || name[0] == 'x' {
		return netloop.RoomSpec{}, netloop.Refuse(netloop.CodeRoomUnknown, "no such room")
	}
	return netloop.RoomSpec{Rate: netloop.Hz(20), MaxClients: 4, Sleep: true, CloseEmpty: 2 * time.Second, KeepDropped: -1, Params: rules{Keep: true, Every: 1, Fails: name[0] == 'y'}}, nil
}

// rules are the Params of a room.
type rules struct {
	Grid bool
	// HideFromOwner is that of the grid.
	HideFromOwner bool
	// Crowd is the number of first objects.
	Crowd uint16
	// Plan is the number of objects from which the state of a newcomer is planned; 0 is the usual
	// one. Pulse is the number of vaults that change in each tick, in a field of their owners.
	Plan, Pulse uint16
	// Stir lets these vaults change for all clients, too, right after a join.
	Stir bool
	// Often wakes the room, if it sleeps, for a system with a period.
	Often bool
	// Watch lets the room watch the others, List lets it publish an Info.
	Watch, List bool
	// Keep lets package persist keep a purse, at most Every so many seconds; see persist.Config.
	Keep  bool
	Every int8
	// Queue lets clients wait for matches, Tables shows a list of rooms, and Fails lets Open fail.
	Queue, Tables, Fails bool
	// Seats gives players seats in a match, with Sit each newcomer: at most SeatsMost, kept for
	// SeatKeep seconds. See seats.Config.
	Seats, Sit bool
	SeatsMost  uint8
	SeatKeep   int8
}

// listing is the Info of a room.
type listing struct{ N uint64 }

// roomKey identifies a room among all of a story.
type roomKey struct {
	name string
	inc  uint64
}

// gameRoom is the state of a room.
type gameRoom struct {
	p     *play
	d     *declared
	key   roomKey
	room  *netloop.Room
	rules rules
	kinds *kinds
	grid  *netloop.Grid

	of    *netloop.PerClient[member]
	guild map[netloop.ClientID]bool
	sides [2]*netloop.ClientGroup
	items []item
	armed map[string]bool // hooks that panic the next time
	busy  uint64          // ticks for which objects change
	lives uint64
	works uint64
	talks uint64 // sent to other rooms and the program
	marks uint64

	shouts uint32

	stir    int    // ticks for which vaults change after a join
	quiet   bool   // the troubles are over
	changes uint64 // runs of the system that edits objects

	board   board // the purse and what Open has fetched
	shown   *typed[board]
	saver   *persist.Saver[purse] // nil without
	timer   *phase.Timer
	phase   phases
	full    time.Duration // the deadline of a phase whose player is present
	absent  bool
	queue   *match.Queue[uint64] // nil without
	waiting map[netloop.ClientID]int
	parties int
	matched uint64

	absentFor time.Duration
	seats     *matchSeats // nil without
	extras    *extras
	shotAt    time.Duration // game time of the last shot

	locked bool // the room's goroutine holds the lock of the world
}

// member is the record of a client.
type member struct {
	join  *netloop.Join
	bot   int
	life  uint64
	seq   [3]uint32
	ship  *netloop.Object[ship]
	views [][2]float64 // fixed viewpoints
	pawn  item
}

// hello is the join parameters of a client's program.
type hello struct{ Bot int }

func (g game) Open(r *netloop.Room) error {
	h := &gameRoom{p: g.p, d: g.p.d, room: r, key: roomKey{r.Spec().Name, r.Incarnation()}, guild: map[netloop.ClientID]bool{}, armed: map[string]bool{}}
	h.kinds = kindsOf(g.p.d, func() string {
		h.marks++
		return markText(h.key, h.marks)
	})
	if err := r.Params(&h.rules); err != nil {
		return err
	}
	if err := h.load(r); err != nil {
		return err
	}
	old, err := h.loadSeats(r)
	if err != nil {
		return err
	}
	g.p.apart(h.key.inc)
	defer g.p.enter()()
	if g.p.dead[r.Server()] { // Its goroutines run on.
		return errors.New("the process has ended")
	}
	if h.rules.Plan > 0 {
		bridge.Netloop.Room(r).World().PlanFrom(int(h.rules.Plan))
	}
	h.sides = [2]*netloop.ClientGroup{netloop.NewClientGroup(), netloop.NewClientGroup()}
	h.of = netloop.NewPerClient[member](r)
	if h.rules.Grid {
		h.grid = netloop.NewGrid(r, netloop.GridSpec{Radius: gridRadius, Margin: gridMargin, Cell: gridCell, HideFromOwner: h.rules.HideFromOwner})
		h.d.pawns.PlaceOn(h.grid, func(s *pawn) (x, y, z float64) { return float64(s.X), float64(s.Y), 0 })
	}
	if h.d.vaults != nil {
		h.d.vaults.Reads(r, "side", func(o *netloop.Object[vault]) netloop.Target { return netloop.InGroup(h.sides[o.State().Side]) })
		h.d.vaults.Reads(r, "guild", func(*netloop.Object[vault]) netloop.Target { return netloop.Where(h.inGuild) })
	}
	h.d.pawns.WeightFor(r, func(c *netloop.Client, o *netloop.Object[pawn]) float64 { return 1 + float64(c.ID()%3) })
	h.holdLock(r)
	h.services(r)
	h.openSeats(r, old)
	h.hooks(r)
	h.openExtras(r)
	h.handlers(r)
	if h.rules.List {
		r.Publish(nil, listing{h.key.inc})
	}
	if h.rules.Watch {
		netloop.WatchRooms(r, netloop.RoomFilter[struct{}]{}, func(_ *netloop.Tick, changes []netloop.RoomChange[struct{}]) {
			defer h.enter()()
			for _, c := range changes {
				h.p.lists.told(h.key, c.Room.Name, c.Room.Players, c.Gone)
			}
		})
	}
	h.p.rooms.opened(h)
	return nil
}

const gridCell, gridRadius, gridMargin = 10.0, 60.0, 30.0

func (h *gameRoom) inGuild(c *netloop.Client) bool { return h.guild[c.ID()] }

// hooks registers the hooks and systems of the room.
func (h *gameRoom) hooks(r *netloop.Room) {
	r.AllowMoves()
	r.OnStart(func(t *netloop.Tick) {
		defer h.enter()()
		for n := range uint64(h.rules.Crowd) {
			h.add(h.kinds.crowd(t, n*2654435761))
		}
	})
	r.OnAdmit(func(_ context.Context, j *netloop.Join) error {
		if !h.p.story.Server.Auth {
			j.Subject = j.Token
		}
		return nil
	})
	r.OnJoin(func(t *netloop.Tick, c *netloop.Client) error {
		if c.SpectatorFeed() {
			h.look(t, c)
			return nil
		}
		m := h.of.Of(c)
		m.join, m.bot = c.Join(), botOf(c)
		h.newLife(m)
		h.p.rooms.joined(h.key, c, m.bot)
		h.p.rights.joined(h.key, c, m.bot)
		h.panics("OnJoin")
		if h.armed["refuse"] {
			delete(h.armed, "refuse")
			return netloop.Refuse(netloop.CodeRefused, "not today")
		}
		if !h.quiet { // Clients that move at rest are compared soon.
			h.stir = 12
		}
		if !c.Spectator() {
			h.settle(t, c, m)
			h.earn(t, command{N: 1})
		}
		h.look(t, c)
		if h.seats != nil {
			if h.seats.entered(c); h.rules.Sit {
				h.seats.sit(t, c)
			}
		}
		return nil
	})
	r.OnDrop(func(_ *netloop.Tick, c *netloop.Client) {
		h.p.rooms.dropped(h.key, c)
		if h.seats != nil {
			h.seats.dropped[c.ID()] = true
		}
		h.panics("OnDrop")
	})
	r.OnResume(func(_ *netloop.Tick, c *netloop.Client) {
		if m := h.of.Of(c); m.join != c.Join() { // Another program.
			m.join, m.bot = c.Join(), botOf(c)
			h.newLife(m)
			h.p.inputs.taken(h.key, c.ID())
		}
		h.p.rooms.resumed(h.key, c, botOf(c))
		if h.seats != nil {
			h.seats.entered(c)
		}
		h.panics("OnResume")
	})
	r.OnRole(func(_ *netloop.Tick, c *netloop.Client) { h.p.rooms.role(h.key, c) })
	r.OnLeave(func(t *netloop.Tick, c *netloop.Client, _ *netloop.Closed) {
		defer h.enter()()
		if c.SpectatorFeed() {
			return
		}
		h.p.rooms.left(h.key, c)
		h.p.rights.left(c)
		h.p.inputs.taken(h.key, c.ID())
		h.forget(c.ID())
		if h.seats != nil {
			delete(h.seats.dropped, c.ID())
		}
		h.save(t)
		delete(h.guild, c.ID())
		h.panics("OnLeave")
	})
	r.OnDrain(func(t *netloop.Tick, left time.Duration) {
		defer h.enter()()
		h.p.ends.draining(h.key, left)
		h.panics("OnDrain")
	})
	r.OnClose(func(ctx context.Context, why *netloop.Closed) error {
		h.close(why)
		if err := h.p.saves.save(ctx, h.key, 0); !errors.Is(err, errStore) {
			return err
		}
		return nil
	})
	r.On(netloop.Update, "simulation.busy", h.change)
	r.On(netloop.Update, "simulation.members", func(t *netloop.Tick) {
		n := 0
		for c := range t.Clients() {
			if !c.SpectatorFeed() {
				n++
			}
		}
		h.d.members.Set(t, float64(n))
	})
	r.On(netloop.FixedUpdate, "simulation.step", func(t *netloop.Tick) {
		h.panics("system")
		if h.d.ships == nil {
			return
		}
		for c, m := range h.of.All(t) {
			if m.ship != nil && m.ship.Alive() && m.ship.Owner() == c.ID() && m.ship.State().V != 0 {
				s := m.ship.Edit(t)
				s.X += s.V
			}
		}
		h.moveShots(t)
	})
	if h.rules.Often {
		r.On(netloop.PreUpdate, "simulation.often", func(*netloop.Tick) {}, netloop.Every(700*time.Millisecond), netloop.RunIf(func(*netloop.Tick) bool { return h.busy > 0 }))
	}
}

// holdLock holds the lock of the world for each tick: its end is before the flush.
func (h *gameRoom) holdLock(r *netloop.Room) {
	r.On(netloop.Initialization, "simulation.lock", func(*netloop.Tick) { h.enter() })
	r.On(netloop.PostLateUpdate, "simulation.unlock", func(*netloop.Tick) { h.leave() }, netloop.Priority(-1))
}

// enter takes the lock of the world, for a function that may run in a tick or beside one.
func (h *gameRoom) enter() (leave func()) {
	if h.locked {
		return func() {}
	}
	h.p.enter()
	h.locked = true
	return h.leave
}

func (h *gameRoom) leave() {
	if h.locked && h.p.w != nil {
		h.locked = false
		h.p.w.unlock()
	}
}

func (h *gameRoom) close(why *netloop.Closed) {
	defer h.enter()()
	if h.saver != nil {
		h.p.keeps.ended(h.key, why)
	}
	if h.seats != nil {
		h.seats.store()
	}
	h.p.rooms.ended(h.key)
	h.p.ends.ended(h.key)
}

// settle gives a player its objects and groups.
func (h *gameRoom) settle(t *netloop.Tick, c *netloop.Client, m *member) {
	m.pawn = h.kinds.pawns.spawn(t, uint64(c.ID())*48271<<4, everyone, netloop.OwnedBy(c.ID()))
	h.items = append(h.items, m.pawn)
	if h.d.ships != nil {
		s := h.kinds.ships.spawn(t, 0, everyone, netloop.OwnedBy(c.ID())).(*typed[ship])
		m.ship = s.o
		h.items = append(h.items, s)
	}
	h.join(t, c, int(c.ID()%2))
	if c.ID()%3 == 0 {
		h.guild[c.ID()] = true
		h.p.rights.allow(h.key, c.ID(), guildRight)
	}
}

// join adds a client to a side.
func (h *gameRoom) join(t *netloop.Tick, c *netloop.Client, side int) {
	h.sides[side].Add(t, c)
	h.p.rights.allow(h.key, c.ID(), side)
}

// look lets a client see from its pawn, or from the middle.
func (h *gameRoom) look(t *netloop.Tick, c *netloop.Client, at ...netloop.Viewpoint) {
	if h.grid == nil {
		return
	}
	m := h.of.Of(c)
	m.views = [][2]float64{{0, 0}}
	if p, ok := m.pawn.(*typed[pawn]); ok {
		at = append(at, netloop.ViewFrom(p.o))
	}
	h.grid.SetView(t, c, append(at, netloop.ViewAt(0, 0, 0))...)
}

func botOf(c *netloop.Client) int {
	var said hello
	if err := c.Join().Params(&said); err != nil {
		return -1
	}
	return said.Bot
}

func (h *gameRoom) newLife(m *member) {
	h.lives++
	m.life, m.seq = h.key.inc<<20|h.lives, [3]uint32{}
}

// panics panics if the hook is armed.
func (h *gameRoom) panics(hook string) {
	if h.armed[hook] {
		delete(h.armed, hook)
		h.p.planned++
		panic("the story's panic in " + hook)
	}
}

// save gives the ledger something to save.
func (h *gameRoom) save(t *netloop.Tick) {
	h.works++
	n := h.works
	h.p.saves.asked(h.key, n)
	netloop.Go(t, func(ctx context.Context) (uint64, error) { return n, h.p.saves.save(ctx, h.key, n) },
		func(_ *netloop.Tick, _ uint64, err error) {
			defer h.enter()()
			h.p.saves.told(h.key, n, err)
		})
	h.p.settle()
}

// change edits objects while the room is busy.
func (h *gameRoom) change(t *netloop.Tick) {
	h.changes++
	h.panics("Update")
	h.pulse(t)
	if h.busy == 0 {
		return
	}
	h.busy--
	h.d.changes.Observe(t, float64(len(h.items)))
	for range min(len(h.items), 1+t.Rand().IntN(6)) {
		h.edit(t, h.items[t.Rand().IntN(len(h.items))], t.Rand().Uint64())
	}
}

// pulse changes a field of some vaults that most clients may not read, and after a join another
// one. At rest only vaults change that nobody owns, and an empty room may sleep.
func (h *gameRoom) pulse(t *netloop.Tick) {
	n := int(h.rules.Pulse)
	if h.quiet && (!h.rules.Stir || h.client(t, 0) == nil) {
		return
	}
	stirs := h.rules.Stir && h.stir > 0
	h.stir--
	for i := 0; i < len(h.items) && n > 0; i++ {
		v, ok := h.items[i].(*typed[vault])
		if !ok || !v.alive() || h.quiet && v.Owner() != 0 {
			continue
		}
		s := v.o.Edit(t)
		s.Gold++
		if n--; stirs {
			s.N++
		}
	}
}

// edit changes an item, and lets its readers be found again if they are others.
func (h *gameRoom) edit(t *netloop.Tick, it item, n uint64) {
	if !it.alive() {
		return
	}
	side := it.side()
	if it.edit(t, n); it.side() != side {
		it.invalidate(t)
	}
	h.p.secrets.wrote(h.key, it)
}

// add keeps a new item.
func (h *gameRoom) add(it item) {
	h.items = append(h.items, it)
	h.p.secrets.wrote(h.key, it)
}

// pick returns a living item, or nil.
func (h *gameRoom) pick(n uint64) item {
	h.items = slices.DeleteFunc(h.items, func(it item) bool { return !it.alive() })
	if len(h.items) == 0 {
		return nil
	}
	return h.items[n%uint64(len(h.items))]
}

// client returns one of the room's clients, or nil.
func (h *gameRoom) client(t *netloop.Tick, n uint64) *netloop.Client {
	all := slices.DeleteFunc(slices.Collect(t.Clients()), (*netloop.Client).SpectatorFeed)
	if len(all) == 0 {
		return nil
	}
	return all[n%uint64(len(all))]
}

// handlers registers the handlers of messages and inputs.
func (h *gameRoom) handlers(r *netloop.Room) {
	h.d.control.Handle(r, func(t *netloop.Tick, from *netloop.Client, in control) {
		h.p.inputs.ran(h.key, from.ID(), t.FixedStep(), in)
		m := h.of.Of(from)
		if m.ship == nil || !m.ship.Alive() || m.ship.Owner() != from.ID() || (in.Fire == 0 && int32(in.Turn) == m.ship.State().V) {
			return
		}
		s := m.ship.Edit(t)
		s.V = int32(in.Turn)
		if in.Fire > 0 {
			s.Fires = in.Fire
			h.pressed(t, from, m)
		}
	})
	h.d.up.Handle(r, func(t *netloop.Tick, from *netloop.Client, m numbered) error {
		defer h.enter()() // It may come before the system.
		h.p.mail.up(h.key, from.ID(), h.of.Of(from).bot, t.Stage(), m)
		h.panics("handler")
		return nil
	})
	h.d.looseUp.Handle(r, func(t *netloop.Tick, from *netloop.Client, m numbered) error {
		h.p.mail.looseUp(h.key, from.ID(), m)
		return nil
	})
	h.d.ask.HandleLater(r, h.answer)
	h.d.atOnce.Handle(r, h.answerAtOnce)
	h.d.claim.Handle(r, h.claimed)
	h.d.talks.HandleRoom(r, func(t *netloop.Tick, from *netloop.Sender, m talk) error {
		defer h.enter()() // It may come before the system.
		h.p.between.ran(h.key, t.Stage(), from, m)
		return nil
	})
	h.d.commands.HandleRoom(r, func(t *netloop.Tick, _ *netloop.Sender, o command) error {
		do, ok := commands[o.Do]
		if !ok {
			return fmt.Errorf("no command %q", o.Do)
		}
		do.run(h, t, o)
		return nil
	})
}

// The modes of questions.
const (
	atOnce = iota
	afterTime
	afterWork
	refused
	never
	badQuestion
	modes
)

func (h *gameRoom) answer(t *netloop.Tick, _ *netloop.Client, q question, reply netloop.Reply[answer]) {
	send := func(t *netloop.Tick) { reply.Send(t, answer{q.N}, nil) }
	switch q.Mode {
	case atOnce:
		send(t)
	case afterTime:
		t.AfterFunc(150*time.Millisecond, send)
	case afterWork:
		netloop.Go(t, func(ctx context.Context) (int, error) { return 0, h.p.saves.wait(ctx, 50*time.Millisecond) },
			func(t *netloop.Tick, _ int, _ error) { send(t) })
		h.p.settle()
	case refused:
		reply.Send(t, answer{}, errors.New("refused"))
	default:
		h.answerOddly(t, q, reply)
	}
}
