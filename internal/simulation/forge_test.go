package simulation

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
)

// forge lets a bot be a hostile program for a time, or one that gets garbage: some of its bytes, or
// of those that the server sends to it, are changed. Then the program ends without a message. The
// promises are those of all others: nothing panics, no other client notices, the tables of the room
// forget the client, and a recording replays.
//
// The facts of the bot itself are not checked any more: its messages may run changed, twice or in
// another order, as it says.
func (p *play) forge(e *Event) {
	g := p.bots[e.Bot]
	if g == nil || !g.playing() || p.lab() == nil {
		return
	}
	g.forges, p.floods = true, true
	f := &forger{Rand: rand.New(rand.NewPCG(p.story.Seed, e.N)), every: 1 + int(e.N>>8%6)}
	if e.N%2 == 0 {
		p.lab().Forge(g.c, f.change, nil)
	} else {
		p.lab().Forge(g.c, nil, f.change)
	}
	p.later(e.For, func() { g.endForging() })
}

// endForging ends the program of a bot that forges.
func (g *bot) endForging() {
	if g.forges && !g.gone {
		g.gone = true
		g.p.w.Drop(g.c)
	}
}

// forger changes one in every packets.
type forger struct {
	*rand.Rand
	every int
	last  []byte
}

// change changes a packet. A hello, by which a moving client names itself, remains as it is: its
// token is the proof of the player.
func (f *forger) change(b []byte, datagram bool) []byte {
	whole := bytes.Clone(b)
	defer func() { f.last = whole }()
	if len(b) == 0 || f.IntN(f.every) > 0 || bytes.Contains(b, []byte("simulation-")) {
		return b
	}
	at := f.IntN(len(b))
	switch f.IntN(8) {
	case 0:
		return b[:at]
	case 1: // A large number in the place of another.
		return slices.Replace(b, at, at+1, binary.AppendUvarint(nil, f.Uint64()>>f.IntN(64))...)
	case 2:
		return append(b, b[at:]...)
	case 3: // A field of an earlier packet.
		return append(b, f.last...)
	case 4:
		b[at] = byte(f.IntN(256))
	case 5:
		return append(b, make([]byte, f.IntN(1500))...)
	case 6:
		b[min(at, 3)] ^= 1 << f.IntN(8)
	default:
		for range 1 + f.IntN(4) {
			b[f.IntN(len(b))] ^= 1 << f.IntN(8)
		}
	}
	return b
}
