package simulation

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"time"
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

// forgeHandshake lets a bot, or the server that answers it, begin with changed bytes. A hello is
// for another game then, so that no server admits the client as another one.
func (p *play) forgeHandshake(g *bot) {
	if p.lab() == nil {
		return
	}
	g.forges, p.floods = true, true
	f := &forger{Rand: rand.New(rand.NewPCG(p.story.Seed, uint64(g.n))), every: 1 + g.n%3, hello: g.n%2 == 0}
	if g.join.Forge == "up" {
		p.lab().Forge(g.c, f.change, nil)
	} else {
		p.lab().Forge(g.c, nil, f.change)
	}
	p.later(4*time.Second, func() { g.endForging() })
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
	hello bool // it changes hellos
}

// change changes a packet. A hello, by which a moving client names itself, remains as it is: its
// token is the proof of the player.
func (f *forger) change(b []byte, datagram bool) []byte {
	whole := bytes.Clone(b)
	defer func() { f.last = whole }()
	if bytes.Contains(b, []byte("simulation-")) {
		if !f.hello {
			return b
		}
		b = bytes.ReplaceAll(b, []byte("simulation-"), []byte("simulatio?-"))
	}
	if len(b) == 0 || f.IntN(f.every) > 0 {
		return b
	}
	at := f.IntN(len(b))
	switch f.IntN(11) {
	case 8: // Many small frames, of an unknown kind.
		if !datagram {
			return append(b, bytes.Repeat([]byte{2, 0x7a, 0}, 1+f.IntN(3000))...)
		}
		return b[:at/2]
	case 9: // A frame of a known kind without content, or with garbage.
		kind, n := byte(1+f.IntN(31)), f.IntN(12)
		frame := append([]byte{byte(n + 2 + int(kind)/16), kind<<3 | 2}, make([]byte, 0, 16)...)
		if kind >= 16 {
			frame = []byte{byte(n + 3), kind<<3 | 2 | 0x80, kind >> 4}
		}
		frame = append(frame, byte(n))
		for range n {
			frame = append(frame, byte(f.Uint64()))
		}
		return append(frame, b...)
	case 10: // An earlier packet, many times.
		if len(f.last) > 0 {
			return append(b, bytes.Repeat(f.last, 1+f.IntN(20_000/len(f.last)+1))...)
		}
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
