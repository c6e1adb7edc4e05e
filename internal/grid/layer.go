package grid

import "math/bits"

// layer stores the cells of things, which are numbered from 0. In the steady state it does not
// allocate: empty cells are reused. There are at most as many cells as things.
type layer struct {
	cells []cell
	used  []int32 // cells with things, in no particular order
	free  []int32
	// hash table: 1 + the index of the first cell of each bucket; its length is a power of two
	heads  []int32
	shift  uint8   // 64 - log2 of its size
	things []thing // by number
	low    Cell    // bounding box of all cells used since the layer was last empty
	high   Cell
	looked uint64 // number of visited cells
}

type cell struct {
	at    Cell
	next  int32 // 1 + the next cell of the bucket
	first int32 // 1 + its first thing
	order int32 // index of the cell in used
}

// thing is an element in the list of a cell.
type thing struct {
	cell       int32 // 1 + the cell; 0: none
	next, prev int32 // 1 + the thing; 0: none
}

// at returns the cell of a thing. It reports false if the thing is in no cell.
func (l *layer) at(id int) (Cell, bool) {
	if id >= len(l.things) || l.things[id].cell == 0 {
		return Cell{}, false
	}
	return l.cells[l.things[id].cell-1].at, true
}

// put moves a thing to a cell, out of its old cell if it has one.
func (l *layer) put(id int, c Cell) {
	for len(l.things) <= id {
		l.things = append(l.things, thing{})
	}
	l.remove(id)
	k := l.cell(c)
	to := &l.cells[k]
	l.things[id] = thing{cell: k + 1, next: to.first}
	if to.first != 0 {
		l.things[to.first-1].prev = int32(id) + 1
	}
	to.first = int32(id) + 1
}

// remove removes a thing from its cell.
func (l *layer) remove(id int) {
	if id >= len(l.things) || l.things[id].cell == 0 {
		return
	}
	t := l.things[id]
	l.things[id] = thing{}
	if t.next != 0 {
		l.things[t.next-1].prev = t.prev
	}
	if t.prev != 0 {
		l.things[t.prev-1].next = t.next
		return
	}
	if from := &l.cells[t.cell-1]; t.next != 0 {
		from.first = t.next
	} else {
		l.release(t.cell - 1)
	}
}

func (l *layer) bucket(c Cell) *int32 {
	return &l.heads[c.word()*0x9e3779b97f4a7c15>>l.shift] // Fibonacci hashing
}

// find returns 1 + the index of a cell in cells, or 0 if the cell has no things.
func (l *layer) find(c Cell) int32 {
	k := *l.bucket(c)
	for k != 0 && l.cells[k-1].at != c {
		k = l.cells[k-1].next
	}
	return k
}

// cell returns the index of a cell, which is allocated if necessary.
func (l *layer) cell(c Cell) int32 {
	if len(l.used) >= len(l.heads) {
		l.grow()
	}
	if k := l.find(c); k != 0 {
		return k - 1
	}
	var k int32
	if n := len(l.free); n > 0 {
		k, l.free = l.free[n-1], l.free[:n-1]
	} else {
		k = int32(len(l.cells))
		l.cells = append(l.cells, cell{})
	}
	head := l.bucket(c)
	l.cells[k] = cell{at: c, next: *head, order: int32(len(l.used))}
	*head = k + 1
	if len(l.used) == 0 {
		l.low, l.high = c, c
	}
	l.low = Cell{min(l.low.X, c.X), min(l.low.Y, c.Y), min(l.low.Z, c.Z)}
	l.high = Cell{max(l.high.X, c.X), max(l.high.Y, c.Y), max(l.high.Z, c.Z)}
	l.used = append(l.used, k)
	return k
}

// release frees a cell without things.
func (l *layer) release(k int32) {
	c := &l.cells[k]
	link := l.bucket(c.at)
	for *link != k+1 {
		link = &l.cells[*link-1].next
	}
	*link = c.next
	last := l.used[len(l.used)-1]
	l.used[c.order], l.cells[last].order = last, c.order
	l.used = l.used[:len(l.used)-1]
	l.free = append(l.free, k)
}

func (l *layer) grow() {
	size := max(64, 2*len(l.heads))
	l.heads, l.shift = make([]int32, size), uint8(64-bits.TrailingZeros(uint(size)))
	for _, k := range l.used {
		head := l.bucket(l.cells[k].at)
		l.cells[k].next, *head = *head, k+1
	}
}

// around visits the cells with things in the box around a cell, either by a lookup of each cell or
// by a scan of all used cells, whichever is cheaper. visit gets 1 + the first thing of the cell.
func (l *layer) around(c Cell, reach int32, visit func(at Cell, first int32)) {
	low := Cell{max(c.X-reach, l.low.X), max(c.Y-reach, l.low.Y), max(c.Z-reach, l.low.Z)}
	high := Cell{min(c.X+reach, l.high.X), min(c.Y+reach, l.high.Y), min(c.Z+reach, l.high.Z)}
	if low.X > high.X || low.Y > high.Y || low.Z > high.Z {
		return
	}
	side := func(a, b int32) int { return int(b-a) + 1 }
	volume := side(low.X, high.X) * side(low.Y, high.Y) * side(low.Z, high.Z)
	if volume >= len(l.used) {
		for _, k := range l.used {
			l.looked++
			if o := &l.cells[k]; o.at.within(c, reach) {
				visit(o.at, o.first)
			}
		}
		return
	}
	l.looked += uint64(volume)
	for x := low.X; x <= high.X; x++ {
		for y := low.Y; y <= high.Y; y++ {
			for z := low.Z; z <= high.Z; z++ {
				if k := l.find(Cell{x, y, z}); k != 0 {
					visit(l.cells[k-1].at, l.cells[k-1].first)
				}
			}
		}
	}
}
