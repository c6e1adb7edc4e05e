package rigid

// The grid finds candidates for contacts: small cubes are in the cell of their centre, and a cell
// is at most as wide as such a cube, so only neighbouring cells matter. Larger cubes are compared
// with every body.
const (
	cell  = 0.75 // metres
	cells = 88   // in each direction: 66 m
)

// cellOf returns the column or row of a coordinate. Coordinates beyond the edge are in the last
// one.
func cellOf(v float64) int { return min(max(int(v/cell+cells/2), 0), cells-1) }

func (b *Body) large() bool { return mul(2*b.half, 1.7320508) > cell }

// fill puts all small bodies into their cells, in order.
func (w *World) fill() {
	for i := range w.heads {
		w.heads[i] = -1
	}
	for i := len(w.Bodies) - 1; i >= 0; i-- {
		if b := &w.Bodies[i]; !b.large() {
			c := cellOf(b.Pos.Y)*cells + cellOf(b.Pos.X)
			w.next[i], w.heads[c] = w.heads[c], int32(i)
		}
	}
}

// pair finds all contacts of awake bodies, in an order that depends only on their numbers and
// positions.
func (w *World) pair() {
	w.fill()
	for i := range w.Bodies {
		b := &w.Bodies[i]
		if b.Asleep {
			continue
		}
		if b.large() {
			for j := range w.Bodies {
				w.meet(i, j)
			}
		} else {
			w.neighbours(i)
		}
		t := w.touch()
		t.a, t.b = int32(i), ground
		if b.Pos.Z > mul(b.half, 1.7320508)+margin || !collideGround(t, b) {
			w.touches = w.touches[:len(w.touches)-1]
		}
	}
}

func (w *World) neighbours(i int) {
	x, y := cellOf(w.Bodies[i].Pos.X), cellOf(w.Bodies[i].Pos.Y)
	for cy := max(y-1, 0); cy <= min(y+1, cells-1); cy++ {
		for cx := max(x-1, 0); cx <= min(x+1, cells-1); cx++ {
			for j := w.heads[cy*cells+cx]; j >= 0; j = w.next[j] {
				w.meet(i, int(j))
			}
		}
	}
}

// meet adds the contact of the awake body i with another one. Of two awake bodies the one with
// the lower number meets the other, but a large one meets all.
func (w *World) meet(i, j int) {
	a, b := &w.Bodies[i], &w.Bodies[j]
	if i == j || !b.Asleep && j < i && a.large() == b.large() {
		return
	}
	d, most := a.Pos.Sub(b.Pos), mul(a.half+b.half, 1.7320508)+margin
	if d.Dot(d) > mul(most, most) {
		return
	}
	if j < i {
		i, j = j, i
	}
	t := w.touch()
	t.a, t.b = int32(i), int32(j)
	if !collide(t, &w.Bodies[i], &w.Bodies[j]) {
		w.touches = w.touches[:len(w.touches)-1]
	}
}

// touch returns a contact without points, in reused memory.
func (w *World) touch() *touch {
	if len(w.touches) == cap(w.touches) {
		w.touches = append(w.touches, touch{})
	} else {
		w.touches = w.touches[:len(w.touches)+1]
	}
	t := &w.touches[len(w.touches)-1]
	t.points = t.points[:0]
	return t
}
