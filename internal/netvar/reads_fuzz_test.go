package netvar

import (
	"bytes"
	"testing"

	"github.com/netloop/netloop/internal/netvar/replica"
)

// maskedScene is a client that may read some fields of two objects, and the next packet: a delta of
// one of them, and a new mask for the other.
func maskedScene(tb testing.TB) (*replica.Replica, []byte) {
	q := newSquad(tb, 50)
	a, b := q.spawn(whole(), 1), q.spawn(whole(), 1)
	q.deliver()
	q.edit(a).X++
	live[agent](a).Ammo++
	q.rules.team = 1 << 2
	q.w.Recheck(b)
	q.edit(b).Y++
	next := q.next()[2]
	q.r[2].Events()
	return q.r[2], next
}

// With any bytes: no panic; an error changes no state, masks included; after success a field
// outside of its object's mask is zero in every version since that mask.
func FuzzMaskedApply(f *testing.F) {
	_, next := maskedScene(f)
	for i := range next {
		f.Add(next, uint16(i), byte(1))
	}
	f.Add(next, uint16(0), byte(0))
	f.Fuzz(func(t *testing.T, b []byte, at uint16, flip byte) {
		r, _ := maskedScene(t)
		b = bytes.Clone(b)
		if int(at) < len(b) {
			b[at] ^= flip
		}
		before := picture(r)
		a, err := r.Apply(b)
		if (err != nil || !a.Ack) && (!bytes.Equal(before, picture(r)) || len(r.Events()) != 0) {
			t.Fatalf("refused or discarded, but something changed: %+v %v", a, err)
		}
		for slot, o := range r.Objects().Slots {
			if o == nil || len(r.Mask(slot)) == 0 {
				continue
			}
			v, mask := o.Hist.Newest(), r.Mask(slot)
			for i := range o.Plan().Leaves() {
				if mask[i>>3]>>(i&7)&1 == 0 && !o.Plan().Same(i, &v, &o.WireClass().Zero) {
					t.Fatalf("%s may not be read, and is not zero", o.Plan().LeafName(i))
				}
			}
		}
	})
}
