package input

import (
	"slices"
	"testing"
)

// FuzzPacket lets a server read bytes as packets of inputs of every form, one after the other. No
// packet panics, and stored inputs are for future steps, are the first for their step, and can be
// written and read again.
func FuzzPacket(f *testing.F) {
	forms := []*Form{formOf(f, control{}), formOf(f, odd{}), formOf(f, struct{}{}), opaque()}
	f.Fuzz(func(t *testing.T, form uint8, done uint64, packet, second []byte) {
		fm := forms[int(form)%len(forms)]
		done %= 1 << 40
		b, r := NewBuffer(window), NewReader(fm, MinRepeats)
		b.Take(r, packet, done)
		was := slices.Clone(b.slots)
		turn := b.generation
		b.Take(r, second, done+1)
		for i := range b.slots {
			s := &b.slots[i]
			if s.step == 0 {
				continue
			}
			if s.step+window <= done || s.step > done+1+window || s.step%window != uint64(i) {
				t.Fatalf("step %d is stored, and %d have run", s.step, done)
			}
			if was[i].step == s.step && was[i] != *s && turn == b.generation {
				t.Fatalf("the first input for step %d was %+v, and is %+v", s.step, was[i], s)
			}
			ring, again := NewRing(fm, hz60), NewBuffer(window)
			fm.store(t, ring.Add(s.step, s.view), s.bytes())
			if again.Take(r, ring.AppendPacket(nil, MaxPacket), s.step-1); again.slots[i] != *s {
				t.Fatalf("step %d: %+v is read as %+v", s.step, s, again.slots[i])
			}
		}
		var due Due
		for step := done + 1; step <= done+window+2; step++ {
			b.Next(step, &due)
		}
		if c := b.Counts(); c.Applied > window+1 || c.Applied+c.Late+c.Ahead > 2*MinRepeats || c.Malformed > 2 {
			t.Fatalf("%+v", c)
		}
	})
}
