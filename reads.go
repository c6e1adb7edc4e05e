package netloop

import (
	"errors"
	"fmt"
	"slices"

	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/panicguard"
)

// ownerRule is the rule that every class has: read=owner.
const ownerRule = "owner"

// Reads says who may read the fields that are tagged with a rule. For each object of the class
// the function returns the clients that may; all others have zeros in those fields, and hear
// nothing of their changes.
//
//	type Ship struct {
//		Pos  Vec                            // for everybody
//		Ammo int32  `net:"read=owner"`      // for the client that owns the ship
//		Plan string `net:"read=team,max=64"`
//	}
//
//	ships.Reads(room, "team", func(o *netloop.Object[Ship]) netloop.Target {
//		return netloop.InGroup(teams[o.State().Team])
//	})
//
// A rule of the game's is any [Target]: [InGroup], [Where] with a function that looks at the
// client, [To], and what And and Or make of them.
//
// The function is asked at the end of the tick in which an object is spawned, and its target then
// for every client. Both are asked again when the object's owner changes and after
// [Object.Invalidate]; the target alone for each client that joins, after its OnJoin functions have
// run, and for each that comes to or goes from a [ClientGroup] that the target names. They are not
// asked each tick, and must change nothing. What changes back within a tick is nothing. A function
// that panics lets nobody read.
//
// Reads belongs into the game's Open, once for each rule that the class's tags name; one that is
// missing fails Open.
func (k *Class[S]) Reads(r *Room, rule string, who func(o *Object[S]) Target) {
	if !r.takes(k.c, "Class.Reads") {
		return
	}
	if err := r.readers[k.c.nv.Index()].define(k.c, rule, func(o *netvar.Object) Target { return who(wrap[S](o)) }); err != nil {
		r.reject(err)
	}
}

// readers are the rules of one class, as package netvar asks for them.
type readers struct {
	room *Room
	at   panicguard.Place
	who  []func(*netvar.Object) Target // by rule; nil of the owner's
}

// restrict tells the world whom it has to ask.
func (r *Room) restrict() {
	r.readers = make([]*readers, len(r.schema.classes))
	for i, c := range r.schema.classes {
		if rules := c.nv.Rules(); rules != nil {
			r.readers[i] = &readers{
				room: r, who: make([]func(*netvar.Object) Target, len(rules)),
				at: panicguard.Place{Name: "Class.Reads", Of: c.nv.Name(), So: "nobody may read by the rule"},
			}
			r.e.World().SetReaders(c.nv, r.readers[i])
		}
	}
}

func (rd *readers) define(c *class, rule string, who func(*netvar.Object) Target) error {
	n := slices.Index(c.nv.Rules(), rule)
	switch {
	case rule == ownerRule:
		return fmt.Errorf("class %q: Reads(%q): who owns an object is known; give the rule another name", c.nv.Name(), rule)
	case n < 1:
		return fmt.Errorf("class %q: Reads(%q): no field is tagged read=%s", c.nv.Name(), rule, rule)
	case rd.who[n] != nil:
		return fmt.Errorf("class %q: Reads(%q): the rule is defined twice", c.nv.Name(), rule)
	}
	rd.who[n] = who
	return nil
}

// undefined is the error of the rules that fields have and that nobody has defined.
func (r *Room) undefined() error {
	var errs []error
	for i, c := range r.schema.classes {
		for n, rule := range c.nv.Rules() {
			if n > 0 && rule != ownerRule && r.readers[i].who[n] == nil {
				errs = append(errs, fmt.Errorf("class %q: field %s has read=%s, and nobody says who that is; call Reads(room, %q, …) of the class in Open", c.nv.Name(), c.nv.RuleField(n), rule, rule))
			}
		}
	}
	return errors.Join(errs...)
}

// Ask implements netvar.Readers.
func (rd *readers) Ask(o *netvar.Object) {
	targets := o.Handle.(interface{ readBy() *[]Target }).readBy()
	if *targets == nil {
		*targets = make([]Target, len(rd.who))
	}
	for n, who := range rd.who {
		if who != nil {
			(*targets)[n] = rd.target(o, who)
		}
	}
}

// target asks a rule. All of this runs within netvar.snapshot, which is critical, so a function of
// the game must not get its panic through: it is the zero Target then, which is nobody.
func (rd *readers) target(o *netvar.Object, who func(*netvar.Object) Target) Target {
	defer rd.room.e.Guard().Recover(&rd.at, nil)
	return who(o)
}

// Withheld implements netvar.Readers.
func (rd *readers) Withheld(o *netvar.Object, p *netvar.Peer) (withheld netvar.Rules) {
	c := peerOf(p)
	for n := 1; n < len(rd.who); n++ {
		if !rd.reads(n, o, c) {
			withheld |= 1 << n
		}
	}
	return withheld
}

func (rd *readers) reads(n int, o *netvar.Object, c *Client) bool {
	if rd.who[n] == nil {
		return o.Owner() == c.e.ID()
	}
	defer rd.room.e.Guard().Recover(&rd.at, nil)
	return (*o.Handle.(interface{ readBy() *[]Target }).readBy())[n].includes(c)
}
