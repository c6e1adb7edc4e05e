package simulation

import (
	"context"
	"time"

	"github.com/netloop/netloop"
)

// commands are the acts of a game in one of its rooms, with their weights among each other.
var commands map[string]struct {
	weight int
	run    func(h *gameRoom, t *netloop.Tick, o command)
}

func init() { // Some rows refer to the table.
	type row = struct {
		weight int
		run    func(h *gameRoom, t *netloop.Tick, o command)
	}
	onItem := func(do func(h *gameRoom, t *netloop.Tick, it item, o command)) func(h *gameRoom, t *netloop.Tick, o command) {
		return func(h *gameRoom, t *netloop.Tick, o command) {
			if it := h.pick(o.N); it != nil {
				do(h, t, it, o)
			}
		}
	}
	onClient := func(do func(h *gameRoom, t *netloop.Tick, c *netloop.Client, o command)) func(h *gameRoom, t *netloop.Tick, o command) {
		return func(h *gameRoom, t *netloop.Tick, o command) {
			if c := h.client(t, o.N); c != nil {
				do(h, t, c, o)
			}
		}
	}
	commands = map[string]row{
		"spawn": {8, (*gameRoom).spawn},
		"edit":  {8, onItem(func(h *gameRoom, t *netloop.Tick, it item, o command) { h.edit(t, it, o.N>>8) })},
		"busy":  {10, func(h *gameRoom, _ *netloop.Tick, o command) { h.busy = 5 + o.N%400 }},
		"quiet": {0, func(h *gameRoom, _ *netloop.Tick, _ command) { h.busy, h.quiet = 0, true; clear(h.armed) }},
		"despawn": {3, onItem(func(h *gameRoom, t *netloop.Tick, it item, _ command) {
			if it.Owner() == 0 {
				it.despawn(t)
			}
		})},
		"own": {4, onItem(func(h *gameRoom, t *netloop.Tick, it item, o command) {
			if c := h.client(t, o.N>>16); c != nil && it.side() != -1 {
				it.own(t, c.ID())
				h.p.secrets.wrote(h.key, it)
			}
		})},
		"show": {5, onItem(func(h *gameRoom, t *netloop.Tick, it item, o command) {
			*it.watchers() = audience(o.N >> 16 % uint64(audiences))
			it.show(t, h.target(it, *it.watchers()))
			h.p.secrets.wrote(h.key, it)
		})},
		"regroup": {4, onClient(func(h *gameRoom, t *netloop.Tick, c *netloop.Client, o command) {
			if side := int(o.N >> 16 % 2); h.sides[side].Has(c) {
				h.sides[side].Remove(t, c)
				h.p.rights.deny(h.key, c.ID(), side)
			} else {
				h.join(t, c, side)
			}
		})},
		"guild": {3, onClient(func(h *gameRoom, t *netloop.Tick, c *netloop.Client, _ command) {
			if h.guild[c.ID()] = !h.guild[c.ID()]; h.guild[c.ID()] {
				h.p.rights.allow(h.key, c.ID(), guildRight)
			} else {
				h.p.rights.deny(h.key, c.ID(), guildRight)
			}
			for _, it := range h.items {
				if it.alive() {
					it.invalidate(t)
				}
			}
		})},
		"look": {3, onClient(func(h *gameRoom, t *netloop.Tick, c *netloop.Client, _ command) { h.look(t, c) })},
		"budget": {3, onClient(func(_ *gameRoom, t *netloop.Tick, c *netloop.Client, o command) {
			c.SetBudget(t, 500+int(o.N>>16%5000))
		})},
		"say": {10, (*gameRoom).say},
		"kick": {2, onClient(func(h *gameRoom, t *netloop.Tick, c *netloop.Client, _ command) {
			h.p.reasons.kick(h.of.Of(c).bot)
			c.Kick(t, netloop.CodeKicked, "the story kicks")
		})},
		"close": {1, func(h *gameRoom, t *netloop.Tick, _ command) {
			h.p.ends.tell(h.key, 0)
			h.room.Close(t, netloop.CodeClosing, h.p.reasons.tell(h.key.name, netloop.CodeClosing))
		}},
		"lock":       {2, func(h *gameRoom, t *netloop.Tick, o command) { h.room.Lock(t, o.N%2 == 0) }},
		"inspect":    {0, func(h *gameRoom, t *netloop.Tick, o command) { h.p.lookAt(t, o.N) }},
		"unlock":     {0, func(h *gameRoom, t *netloop.Tick, _ command) { h.room.Lock(t, false) }},
		"earn":       {8, (*gameRoom).earn},
		"phase":      {5, (*gameRoom).begin},
		"away":       {3, (*gameRoom).away},
		"stop phase": {1, (*gameRoom).stopPhase},
		"sit":        {4, onClient((*gameRoom).sit)},
		"wait":       {8, onClient((*gameRoom).wait)},
		"explain":    {3, onClient((*gameRoom).explain)},
		"systems":    {4, func(h *gameRoom, _ *netloop.Tick, o command) { h.extras.change(o) }},
		"take seat": {5, onClient(func(h *gameRoom, t *netloop.Tick, c *netloop.Client, _ command) {
			if h.seats != nil {
				h.seats.sit(t, c)
			}
		})},
		"match": {4, func(h *gameRoom, t *netloop.Tick, o command) {
			if h.seats != nil {
				h.seats.act(t, o)
			}
		}},
		"shout":         {0, (*gameRoom).shout},
		"misfit":        {0, onItem((*gameRoom).misfit)},
		"unedited":      {0, onItem((*gameRoom).unedited)},
		"explain field": {0, onClient((*gameRoom).explainField)},
		"give ship":     {0, onClient((*gameRoom).giveShip)},
		"save":          {4, func(h *gameRoom, t *netloop.Tick, _ command) { h.save(t) }},
		"later": {3, func(h *gameRoom, t *netloop.Tick, o command) {
			t.AfterFunc(time.Duration(o.N%5000)*time.Millisecond, func(t *netloop.Tick) { h.busy = 3 })
			t.AfterFuncScaled(time.Duration(o.N>>16%2000)*time.Millisecond, func(t *netloop.Tick) { h.busy = 1 })
			t.At(t.InScaled(time.Duration(o.N%3000)*time.Millisecond), func(t *netloop.Tick) { h.busy = 2 })
		}},
		"scale":   {2, func(h *gameRoom, t *netloop.Tick, o command) { h.room.SetTimeScale(t, int(o.N%3), 1) }},
		"publish": {2, func(h *gameRoom, t *netloop.Tick, o command) { h.room.Publish(t, listing{o.N}) }},
		"panic": {3, func(h *gameRoom, _ *netloop.Tick, o command) {
			hooks := []string{"OnJoin", "OnDrop", "OnResume", "OnLeave", "OnDrain", "system", "Update", "handler", "refuse", "seat"}
			h.armed[hooks[o.N%uint64(len(hooks))]] = true
		}},
		"spend": {1, func(h *gameRoom, _ *netloop.Tick, o command) { h.p.spend(time.Duration(o.For)) }},
		"talk":  {5, (*gameRoom).talk},
		"open": {2, func(h *gameRoom, t *netloop.Tick, o command) {
			t.OpenRoom(netloop.RoomSpec{Name: o.Text, Rate: netloop.Hz(30), MaxClients: 3, Sleep: o.N%2 == 0, CloseEmpty: time.Second * time.Duration(o.N%3), KeepDropped: -1},
				func(*netloop.Tick, netloop.RoomInfo, error) {})
			h.p.settle()
		}},
		"list": {2, func(h *gameRoom, t *netloop.Tick, _ command) {
			netloop.Go(t, func(context.Context) ([]netloop.RoomListing[listing], error) {
				return netloop.ListRooms(h.room.Server(), netloop.RoomFilter[listing]{}), nil
			}, func(*netloop.Tick, []netloop.RoomListing[listing], error) {})
			h.p.settle()
		}},
		"send on": {0, func(h *gameRoom, t *netloop.Tick, o command) {
			if c, ok := t.Client(o.Client); ok && !c.SpectatorFeed() {
				c.Move(t, netloop.Ticket(o.Text))
			}
		}},
		"reserve and send on": {2, onClient(func(h *gameRoom, t *netloop.Tick, c *netloop.Client, o command) {
			id := c.ID()
			v := netloop.Reservation{TTL: 3 * time.Second, Spectator: o.N>>16%4 == 0, Params: o.N}
			t.Reserve(o.Text, v, func(t *netloop.Tick, all []netloop.Ticket, err error) {
				if err != nil {
					return
				}
				h.p.rights.reserved(o.Text, v)
				if c, ok := t.Client(id); ok {
					c.Move(t, all[0])
				}
			})
			h.p.settle()
		})},
		"work": {2, func(h *gameRoom, t *netloop.Tick, o command) {
			netloop.Go(t, func(ctx context.Context) (uint64, error) {
				return o.N, h.p.saves.wait(ctx, time.Duration(o.N%2000)*time.Millisecond)
			}, func(t *netloop.Tick, n uint64, _ error) { h.busy = n % 5 })
			h.p.settle()
		}},
	}
}

// spawn makes an object, in some cases for an owner, for some clients, or to be kept.
func (h *gameRoom) spawn(t *netloop.Tick, o command) {
	if len(h.items) > 400 {
		return
	}
	var opt []netloop.SpawnOption
	to := everyone
	if c := h.client(t, o.N>>32); c != nil && o.N>>16%3 == 0 {
		opt = append(opt, netloop.OwnedBy(c.ID()))
	}
	if o.N>>18%2 == 0 {
		opt = append(opt, netloop.WhenOwnerLeaves(netloop.LeaveKeeps))
	}
	if a := audience(o.N >> 20 % uint64(audiences)); o.N>>24%2 == 0 && a != itsOwner {
		to = a
		opt = append(opt, netloop.VisibleTo(h.target(nil, a)))
	}
	h.add(h.kinds.spawn(t, o.N, o.N>>8, to, opt...))
}

// say sends numbered messages to all clients: reliable ones, with state, and loose ones.
func (h *gameRoom) say(t *netloop.Tick, o command) {
	for c, m := range h.of.All(t) {
		if c.SpectatorFeed() {
			continue
		}
		for range 1 + o.N%4 {
			for k, rpc := range []*netloop.RPC[numbered]{h.d.down, h.d.down, h.d.looseDown} {
				m.seq[k]++
				said := numbered{Life: m.life<<2 | uint64(k), Seq: m.seq[k], To: c.ID()}
				if k == 1 {
					rpc.Send(t, netloop.To(c.ID()), said, netloop.WithState())
				} else {
					rpc.Send(t, netloop.To(c.ID()), said)
				}
			}
		}
		h.p.mail.said(h.key, c.ID(), m.life, m.seq[0])
	}
}

// talk sends messages to another room, at times more than may wait there, and one to the program.
func (h *gameRoom) talk(t *netloop.Tick, o command) {
	stages, many := netloop.AllStages(), 1+o.N>>16%3
	switch o.N >> 20 % 40 {
	case 0:
		many = 300
	case 1:
		many = 1100
	}
	if o.N>>32%10 == 0 {
		o.Text = "nowhere"
	}
	m := talk{Room: h.key.inc, Stage: stages[o.N>>8%uint64(len(stages))]}
	send := func(to string) (talk, func(*netloop.Tick, error)) {
		h.talks++
		m.Seq = h.talks
		k := talkKey{h.key, m.Seq, to}
		h.p.between.sent(k)
		return m, func(_ *netloop.Tick, err error) {
			defer h.enter()()
			h.p.between.told(k, err)
		}
	}
	for range many {
		m, then := send(o.Text)
		h.d.talks.SendRoom(t, o.Text, m, then, netloop.RunAt(m.Stage))
	}
	m, then := send(program)
	h.d.news.SendServer(t, m, then)
}
