package netvar

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/netvar/interest"
	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/testing/seeds"
)

// spy has fields that only its owner may read, beside others with the same interval.
type spy struct {
	Pair struct {
		Open   int32
		Secret int32 `net:"read=owner"`
	} `net:"interval=100ms"`
	X    int32
	Far  float32 `net:"threshold=2"`
	Deep int32   `net:"read=owner,weight=8"`
	Near float32 `net:"threshold=2,read=owner"`
	Name string  `net:"max=16"`
}

// bigSpy also has a text that may not fit a packet.
type bigSpy struct {
	Base spy
	Note string `net:"max=1500"`
	Plan string `net:"max=1500,read=owner"`
}

// secretWorld is a world of spies. Client 1 may not see all of them, and client 2 owns all.
type secretWorld struct {
	class, big *state.Class
	table      *state.Table
	w          *World
	p          [3]*Peer
	r          [3]*replica.Replica
	objects    []*state.Object
	tick       uint64
	open       *rand.Rand // random events of both worlds
	secret     *rand.Rand // random events that client 1 must not notice
	link       *rand.Rand
	lim        Limit
	sees       map[*state.Object]bool // by client 1
	budget     int
	lossy      bool
}

// secretAudience shows all objects to client 2, and those in sees to client 1.
type secretAudience struct {
	s *secretWorld
	o *state.Object
}

func (a *secretAudience) Includes(p *interest.Viewer) bool {
	return p.Handle.(int) == 2 || a.s.sees[a.o]
}

// ownersAlone implements Readers: the rule is that of the owner.
type ownersAlone struct{}

func (ownersAlone) Ask(*state.Object) {}

func (ownersAlone) Withheld(o *state.Object, p *interest.Viewer) (w state.Rules) {
	if o.Owner() != uint64(p.Handle.(int)) {
		w = ownerRule
	}
	return w
}

func newSecretWorld(t *testing.T, seed, secret uint64) *secretWorld {
	s := &secretWorld{class: classOf[spy](t, "spy"), big: classOf[bigSpy](t, "bigSpy"), sees: map[*state.Object]bool{},
		open: rand.New(rand.NewPCG(seed, 1)), link: rand.New(rand.NewPCG(seed, 2)), secret: rand.New(rand.NewPCG(seed, 3+secret))}
	s.table = state.NewTable(s.class, s.big)
	s.w = NewWorld(s.table)
	s.w.SetReaders(s.class, ownersAlone{})
	s.w.SetReaders(s.big, ownersAlone{})
	s.w.farBehind = 1 + int(seed%3)*10
	s.lim = Limit{Packets: 1 + int(seed%4), PacketSize: 300 + 800*int(seed%2), Reliable: true}
	s.budget, s.lossy = int(seed%5)*30, seed%3 > 0
	return s
}

func (s *secretWorld) join(i int) {
	s.p[i], s.r[i] = s.w.NewPeer(s.tick+1), replica.New(s.table)
	s.p[i].Handle = i
	if i == 1 && s.budget > 0 {
		s.p[i].SetBudget(Budget{PerTick: s.budget, Burst: 1200})
	}
}

func (s *secretWorld) spawn() {
	var o *state.Object
	if s.open.IntN(8) == 0 {
		o = s.w.Spawn(s.big, unsafe.Pointer(new(bigSpy)), 2, s.tick+1)
	} else {
		o = s.w.Spawn(s.class, unsafe.Pointer(new(spy)), 2, s.tick+1)
	}
	s.objects = append(s.objects, o)
	if s.open.IntN(2) == 0 {
		s.sees[o] = s.open.IntN(3) > 0
		s.w.SetAudience(o, &secretAudience{s, o})
	} else {
		s.sees[o] = true
	}
}

func (s *secretWorld) edit(o *state.Object, rng *rand.Rand, all bool) {
	s.w.Edit(o)
	v := (*spy)(o.Live()) // bigSpy begins with a spy
	if all {
		n := rng.IntN(5)
		if rng == s.secret && (n == 0 || n == 2) {
			// Fields are held back for all clients alike, so these would reveal a hidden object.
			n = 1
		}
		switch n {
		case 0:
			v.Pair.Open++
		case 1:
			v.X += rng.Int32N(20)
		case 2:
			v.Far += rng.Float32()
		case 3:
			v.Name = strings.Repeat("n", rng.IntN(16))
		default:
			if o.WireClass() == s.big {
				live[bigSpy](o).Note = strings.Repeat("m", rng.IntN(1500))
			}
		}
		return
	}
	switch rng.IntN(4) {
	case 0:
		v.Pair.Secret++
	case 1:
		v.Deep += rng.Int32N(20)
	case 2:
		v.Near += rng.Float32() * 4
	default:
		if o.WireClass() == s.big {
			live[bigSpy](o).Plan = strings.Repeat("p", rng.IntN(1500))
		}
	}
}

// step is a tick. It returns all data sent to client 1.
func (s *secretWorld) step(t *testing.T) (sent [][]byte) {
	for _, o := range s.objects {
		if s.open.IntN(6) == 0 {
			// Objects that are hidden from client 1 change in secret.
			s.sayEdit(o)
		}
		if s.secret.IntN(3) == 0 {
			s.edit(o, s.secret, false)
		}
		if !s.sees[o] && s.secret.IntN(3) == 0 {
			s.edit(o, s.secret, true)
		}
		if s.w.Audience(o) != nil && s.open.IntN(30) == 0 {
			s.sees[o] = !s.sees[o]
			s.w.Recheck(o)
			if s.sees[o] { // shown with equal values in both worlds
				*(*spy)(o.Live()) = spy{}
				if o.WireClass() == s.big {
					*live[bigSpy](o) = bigSpy{}
				}
				s.w.Edit(o)
			}
		}
	}
	s.tick++
	s.w.Capture(s.tick)
	for i := 1; i < 3; i++ {
		if s.p[i] == nil {
			continue
		}
		lim := s.lim
		packets, _ := snap(s.p[i], s.tick, lim)
		all := append(packets, s.p[i].Large()...)
		if i == 1 {
			sent = cloneAll(all)
		}
		for j, b := range all {
			if j < len(packets) {
				lost := i == 1 && s.lossy && s.link.IntN(5) == 0
				if lost {
					continue
				}
				a, err := s.r[i].Apply(b)
				if err != nil {
					t.Fatalf("tick %d: client %d refuses a packet: %v", s.tick, i, err)
				}
				if a.Ack {
					s.p[i].Ack([]Range{{a.Packet, a.Packet}})
				}
			} else if id, err := s.r[i].ApplyLarge(b); err != nil {
				t.Fatalf("tick %d: client %d refuses a record: %v", s.tick, i, err)
			} else {
				s.p[i].AckLarge(id)
			}
		}
	}
	return sent
}

func (s *secretWorld) sayEdit(o *state.Object) { s.edit(o, s.open, true) }

func cloneAll(list [][]byte) (all [][]byte) {
	for _, b := range list {
		all = append(all, bytes.Clone(b))
	}
	return all
}

// A client is sent the same bytes, for any changes of unreadable fields and hidden objects.
func TestSecretsChangeNoByte(t *testing.T) {
	for seed := range seeds.Of(t, 40) {
		var worlds [2]*secretWorld
		for i := range worlds {
			s := newSecretWorld(t, seed, uint64(i))
			for range 5 + s.open.IntN(30) {
				s.spawn()
			}
			s.join(2)
			worlds[i] = s
		}
		for tick := range 260 {
			var sent [2][][]byte
			for i, s := range worlds {
				if tick == 3 {
					s.join(1)
				}
				if tick > 3 && s.open.IntN(40) == 0 {
					s.p[1].RequestDigest(3)
				}
				if tick > 3 && s.open.IntN(90) == 0 {
					s.p[1].RequestFull()
				}
				sent[i] = s.step(t)
			}
			if a, b := fmt.Sprintf("%x", sent[0]), fmt.Sprintf("%x", sent[1]); a != b {
				t.Fatalf("seed %d, tick %d: one world sends\n%s\nand the other\n%s\nrerun: NETLOOP_SEED=%d go test -run TestSecretsChangeNoByte ./internal/netvar", seed, tick+1, a, b, seed)
			}
		}
	}
}
