package simulation

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/netloop/netloop"
)

// secrets searches the bytes that the server sends for fields of others. The documents: SECURITY.md
// and the comments of netloop.Class.Reads, SpawnOption and Target.
//
//   - No packet to a client has a byte of a field that the client may not read, or of an object
//     that it may not see.
//
// Strings of vaults are marks, each written once. A client may be sent a mark if it had a right to
// it at any time since the mark was written.
type secrets struct {
	p      *play
	marks  map[string]*secret
	lost   map[reader]time.Duration // when a client lost a right
	ids    map[int]map[roomKey][]netloop.ClientID
	common [256]bool // bytes of a prefix, shifted by 0 to 7 bits
}

// secret is a mark.
type secret struct {
	key   roomKey
	it    item
	field string
	at    time.Duration // when it was written

	owners  []netloop.ClientID // since then
	sides   [2]bool
	viewers [audiences]bool
}

// markPrefix begins each mark; markDigits follow.
const (
	markPrefix = "~#Zq"
	markDigits = 8
	markSize   = len(markPrefix) + markDigits
)

// markText returns the n-th mark of a room. The text depends on the room alone, or its recording
// would not replay.
func markText(key roomKey, n uint64) string {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	h := fnv.New64a()
	fmt.Fprint(h, key.name, key.inc, " ", n)
	sum := h.Sum64()
	text := []byte(markPrefix)
	for range markDigits {
		text = append(text, digits[sum%64])
		sum /= 64
	}
	return string(text)
}

func newSecrets(p *play) secrets {
	s := secrets{p: p, marks: map[string]*secret{}, lost: map[reader]time.Duration{}, ids: map[int]map[roomKey][]netloop.ClientID{}}
	prefix := binary.LittleEndian.Uint32([]byte(markPrefix))
	for shift := range 8 {
		s.common[byte(uint64(prefix)<<shift>>8)] = true
	}
	return s
}

// wrote notes the marks of an item, and the clients that may read it now.
func (s *secrets) wrote(key roomKey, it item) {
	if s.p.w == nil {
		return
	}
	for field, text := range it.marks() {
		m := s.marks[text]
		if m == nil {
			m = &secret{key: key, it: it, field: field, at: s.p.w.Now()}
			s.marks[text] = m
		}
		m.owners = append(m.owners, it.Owner())
		m.sides[it.side()] = true
		m.viewers[*it.watchers()] = true
	}
}

// is notes that a bot is a client of a room.
func (s *secrets) is(bot int, key roomKey, id netloop.ClientID) {
	if s.ids[bot] == nil {
		s.ids[bot] = map[roomKey][]netloop.ClientID{}
	}
	s.ids[bot][key] = append(s.ids[bot][key], id)
}

// listen searches all bytes to a bot.
func (s *secrets) listen(g *bot) {
	if s.p.d.vaults == nil || s.p.real {
		return
	}
	var last []byte // of the stream
	s.p.lab().Tap(g.c, func(b []byte, datagram bool) {
		if datagram {
			s.search(g, b)
			return
		}
		last = append(last, b...)
		s.search(g, last)
		last = append(last[:0], last[max(0, len(last)-markSize):]...)
	})
}

// search looks for marks at each bit.
func (s *secrets) search(g *bot, b []byte) {
	prefix := binary.LittleEndian.Uint32([]byte(markPrefix))
	for i := 1; i+markSize <= len(b); i++ {
		if !s.common[b[i]] {
			continue
		}
		word := binary.LittleEndian.Uint64(b[i-1:])
		for shift := range 8 {
			if uint32(word>>shift) == prefix {
				s.found(g, b[i-1:], shift)
			}
		}
	}
}

// found checks the right of a bot to a mark at a bit.
func (s *secrets) found(g *bot, b []byte, shift int) {
	text := make([]byte, markSize)
	for i := range text {
		text[i] = byte((uint16(b[i]) | uint16(b[min(i+1, len(b)-1)])<<8) >> shift)
	}
	m := s.marks[string(text)]
	if m == nil || s.may(g, m) {
		return
	}
	s.p.fail("secrets", "bot %d is sent %s of %s in room %q, which it may not read", g.n, m.field, m.it.id(), m.key.name)
}

// may reports whether a bot may be sent a mark.
func (s *secrets) may(g *bot, m *secret) bool {
	if f := s.p.rooms.byName[m.key.name]; m.field == "Name" && m.viewers[everyone] || f == nil {
		return true
	}
	for _, id := range s.ids[g.n][m.key] {
		if s.sees(m, id) && s.reads(m, id) {
			return true
		}
	}
	return false
}

func (s *secrets) sees(m *secret, id netloop.ClientID) bool {
	return m.viewers[everyone] || m.viewers[itsOwner] && m.owned(id) || m.viewers[firstSide] && s.had(m, id, 0) ||
		m.viewers[secondSide] && s.had(m, id, 1) || m.viewers[itsGuild] && s.had(m, id, guildRight)
}

func (s *secrets) reads(m *secret, id netloop.ClientID) bool {
	switch m.field {
	case "Note":
		return m.owned(id)
	case "Plan":
		return m.sides[0] && s.had(m, id, 0) || m.sides[1] && s.had(m, id, 1)
	case "Key":
		return s.had(m, id, guildRight)
	}
	return true
}

func (m *secret) owned(id netloop.ClientID) bool {
	for _, o := range m.owners {
		if o == id {
			return true
		}
	}
	return false
}

// had reports whether a client had a right since a mark was written.
func (s *secrets) had(m *secret, id netloop.ClientID, what int) bool {
	r := reader{m.key, id, what}
	lost, gone := s.lost[r]
	return s.p.rights.groups[r] && (!gone || lost >= m.at)
}
