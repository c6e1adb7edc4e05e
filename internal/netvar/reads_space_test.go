package netvar

import (
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/grid"
	"github.com/netloop/netloop/internal/netvar/interest"
)

// In a space objects appear and disappear often. The readable fields of an object are judged when
// it appears, and for the reasons that exist outside of spaces; moving is none.
func TestMovingInASpaceAsksNoRules(t *testing.T) {
	q := newSquad(t, 0)
	shape, err := grid.NewShape(10, 30, 20)
	if err != nil {
		t.Fatal(err)
	}
	space, err := q.w.NewSpace(shape, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := space.Hold(q.class, func(live unsafe.Pointer) (x, y, z float64) { return float64((*agent)(live).X), 0, 0 }); err != nil {
		t.Fatal(err)
	}
	space.SetViewpoints(&q.p[2].Viewer, interest.Viewpoint{X: 5})
	o := q.spawn(whole(), 1)
	q.deliver()
	q.want(2, o, withhold(*live[agent](o), ownerRule|teamRule))
	asked, judged := q.rules.asked, q.rules.judged
	for _, x := range []int32{45, 5, 49, -15, 30} { // over many cells, always within the radius
		q.edit(o).X = x
		q.deliver()
	}
	if q.rules.asked != asked || q.rules.judged != judged {
		t.Errorf("asked %d times, %d clients", q.rules.asked-asked, q.rules.judged-judged)
	}
	q.edit(o).X = 500
	q.deliver()
	q.w.SetOwner(o, 2)
	q.deliver()
	if _, ok := q.r[2].Get(o.ID()); ok {
		t.Fatal("seen from afar")
	}
	q.edit(o).X = 5
	q.deliver()
	q.want(2, o, withhold(*live[agent](o), teamRule))
	q.w.SetOwner(o, 0)
	q.deliver()
	q.want(2, o, withhold(*live[agent](o), ownerRule|teamRule))
	q.settled()
}
