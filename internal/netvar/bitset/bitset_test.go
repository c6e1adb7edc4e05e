package bitset

import (
	"math/rand/v2"
	"testing"
)

// plainSet is a table of members, with the length of a bitset that has had these members.
type plainSet struct {
	has   [320]bool
	words int
}

func (s *plainSet) set(i int, in bool) {
	if s.has[i] = in; in {
		s.words = max(s.words, i>>6+1)
	}
}

// setWord adds or removes the slots of a word.
func (s *plainSet) setWord(k int, word uint64, in bool) {
	for i := range 64 {
		if word>>i&1 != 0 {
			s.set(k<<6+i, in)
		}
	}
	if in {
		s.words = max(s.words, k+1)
	}
}

// with adds or removes the members of o that are not in but.
func (s *plainSet) with(o, but *plainSet, in bool) {
	for i, has := range o.has {
		if has && !but.has[i] {
			s.has[i] = in
		}
	}
	if in {
		s.words = max(s.words, o.words)
	}
}

// A bitset agrees with a table, for operands of all lengths, and becomes no longer than the longest
// of them.
func TestBitsetAgreesWithATable(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 8))
	for round := range 200 {
		var sets [3]Set
		var plain [3]plainSet
		for range 60 {
			a, b, c := rng.IntN(3), rng.IntN(3), rng.IntN(3)
			i := rng.IntN(320) >> rng.IntN(4)
			k, word := i>>6, rng.Uint64()&rng.Uint64()
			switch rng.IntN(9) {
			case 0, 1:
				sets[a].Add(i)
				plain[a].set(i, true)
			case 2:
				sets[a].Remove(i)
				plain[a].set(i, false)
			case 3:
				sets[a].AddWord(k, word)
				plain[a].setWord(k, word, true)
			case 4:
				sets[a].RemoveWord(k, word)
				plain[a].setWord(k, word, false)
			case 5:
				sets[a].OrBut(sets[b], sets[c])
				plain[a].with(&plain[b], &plain[c], true)
			case 6:
				sets[a].SubBut(sets[b], sets[c])
				plain[a].with(&plain[b], &plain[c], false)
			case 7:
				sets[a].Or(sets[b])
				plain[a].with(&plain[b], new(plainSet), true)
			case 8:
				sets[a].Sub(sets[b])
				plain[a].with(&plain[b], new(plainSet), false)
			}
			sets[a].mustBe(t, round, &plain[a])
		}
	}
}

func (b Set) mustBe(t *testing.T, round int, want *plainSet) {
	t.Helper()
	if len(b) != want.words {
		t.Fatalf("round %d: %d words, want %d", round, len(b), want.words)
	}
	count, next := 0, -1
	for i := len(want.has) - 1; i >= 0; i-- {
		if want.has[i] {
			count++
			next = i
		}
		if b.Has(i) != want.has[i] || b.Word(i>>6)>>(i&63)&1 != 0 != want.has[i] || b.Next(i) != next {
			t.Fatalf("round %d: slot %d: has %v, want %v; next %d, want %d", round, i, b.Has(i), want.has[i], b.Next(i), next)
		}
	}
	if b.Count() != count {
		t.Fatalf("round %d: %d members, want %d", round, b.Count(), count)
	}
}

func TestASetHasSomeMembers(t *testing.T) {
	var s Set
	for _, c := range []struct {
		change func(int)
		some   bool
	}{
		{func(int) {}, false},
		{func(i int) { s.Add(i) }, true},
		{func(i int) { s.Remove(i) }, false},
	} {
		if c.change(70); s.Some() != c.some {
			t.Errorf("%v has some members: %v", s, s.Some())
		}
	}
}
