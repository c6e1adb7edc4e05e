package netloop

import (
	"errors"
	"fmt"
	"slices"

	"github.com/netloop/netloop/internal/netvar/interest"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/panicguard"
)

// ownerRule is the rule read=owner, which every class has.
const ownerRule = "owner"

// Reads defines the read rule of the fields with the tag read= and its name. For each object of the
// class, readers returns the clients that may read these fields. Other clients have zeros in the
// fields, and are not sent their changes.
//
//	type Ship struct {
//		Pos  Vec                            // for all clients
//		Ammo int32  `net:"read=owner"`      // for the client that owns the ship
//		Plan string `net:"read=team,max=64"`
//	}
//
//	ships.Reads(room, "team", func(o *netloop.Object[Ship]) netloop.Target {
//		return netloop.InGroup(teams[o.State().Team])
//	})
//
// A rule's result is any [Target]: [InGroup], [Where] with a function of the client, [To], and
// combinations by And and Or.
//
// The room calls readers at the end of the tick in which an object is spawned, and then evaluates
// the target for every client. It does both again when the object's owner changes and after
// [Object.Invalidate]. It evaluates only the target for each client that joins, after the client's
// OnJoin functions have run, and for each client that joins or leaves a [ClientGroup] that the
// target names. It does none of this each tick, and the functions must change no state. A change
// that is undone within a tick has no effect. If a function panics, no client may read the fields.
//
// Call Reads in the game's Open, once for each rule that the class's tags name. Open fails if a
// rule is missing.
func (k *Class[S]) Reads(r *Room, rule string, readers func(o *Object[S]) Target) {
	if !r.takes(k.c, "Class.Reads") {
		return
	}
	if err := r.readers[k.c.nv.Index()].define(k.c, rule, func(o *state.Object) Target { return readers(wrap[S](o)) }); err != nil {
		r.reject(err)
	}
}

// readers are the read rules of one class. It implements interest.Readers.
type readers struct {
	room  *Room
	at    panicguard.Func
	rules []func(*state.Object) Target // by rule; nil for the rule "owner"
}

// setReaders registers the readers of all classes with rules.
func (r *Room) setReaders() {
	r.readers = make([]*readers, len(r.schema.classes))
	for i, c := range r.schema.classes {
		if rules := c.nv.Rules(); rules != nil {
			r.readers[i] = &readers{
				room: r, rules: make([]func(*state.Object) Target, len(rules)),
				at: panicguard.Func{Name: "Class.Reads", Class: c.nv.Name(), Effect: "no client may read by the rule"},
			}
			r.e.World().SetReaders(c.nv, r.readers[i])
		}
	}
}

func (rd *readers) define(c *class, rule string, target func(*state.Object) Target) error {
	n := slices.Index(c.nv.Rules(), rule)
	switch {
	case rule == ownerRule:
		return fmt.Errorf("class %q: Reads(%q): every class has this rule; use another name", c.nv.Name(), rule)
	case n < 1:
		return fmt.Errorf("class %q: Reads(%q): no field is tagged read=%s", c.nv.Name(), rule, rule)
	case rd.rules[n] != nil:
		return fmt.Errorf("class %q: Reads(%q): the rule is defined twice", c.nv.Name(), rule)
	}
	rd.rules[n] = target
	return nil
}

// undefinedRules returns an error for rules that tags of fields name and Reads has not defined.
func (r *Room) undefinedRules() error {
	var errs []error
	for i, c := range r.schema.classes {
		for n, rule := range c.nv.Rules() {
			if n > 0 && rule != ownerRule && r.readers[i].rules[n] == nil {
				errs = append(errs, fmt.Errorf("class %q: field %s has read=%s, and the rule is not defined: call Reads(room, %q, …) of the class in Open", c.nv.Name(), c.nv.RuleField(n), rule, rule))
			}
		}
	}
	return errors.Join(errs...)
}

// Ask implements interest.Readers.
func (rd *readers) Ask(o *state.Object) {
	targets := o.Handle.(interface{ readBy() *[]Target }).readBy()
	if *targets == nil {
		*targets = make([]Target, len(rd.rules))
	}
	for n, rule := range rd.rules {
		if rule != nil {
			(*targets)[n] = rd.target(o, rule)
		}
	}
}

// target calls a rule. It runs within the critical system netvar.snapshot, so it recovers a panic
// of the game's function, and then returns the zero Target, which is empty.
func (rd *readers) target(o *state.Object, rule func(*state.Object) Target) Target {
	defer rd.room.e.Guard().Recover(&rd.at, nil)
	return rule(o)
}

// Withheld implements interest.Readers.
func (rd *readers) Withheld(o *state.Object, p *interest.Viewer) (withheld state.Rules) {
	c := peerOf(p)
	for n := 1; n < len(rd.rules); n++ {
		if !rd.reads(n, o, c) {
			withheld |= 1 << n
		}
	}
	return withheld
}

func (rd *readers) reads(n int, o *state.Object, c *Client) bool {
	if rd.rules[n] == nil {
		return o.Owner() == c.e.ID()
	}
	defer rd.room.e.Guard().Recover(&rd.at, nil)
	return (*o.Handle.(interface{ readBy() *[]Target }).readBy())[n].includes(c)
}
