package rigid

import (
	"math"
	"testing"
)

func run(w *World, seconds float64) {
	for range int(seconds * 60) {
		w.Step()
	}
}

// tilted adds a rotated cube that falls.
func tilted(w *World, height float64) *Body {
	b := w.Add(0.4, 1, Vec{Z: height})
	b.Push(Vec{}, Vec{X: 0.05, Y: 0.03, Z: 0.02})
	return b
}

func TestACubeFallsAndStopsOnASide(t *testing.T) {
	var w World
	b := tilted(&w, 2)
	run(&w, 12)
	if !b.Asleep || b.Vel != (Vec{}) || b.Spin != (Vec{}) {
		t.Fatalf("it is not at rest: %+v", *b)
	}
	if math.Abs(b.Pos.Z-0.2) > 0.01 {
		t.Errorf("its middle is %.3f m above the ground, want half its side", b.Pos.Z)
	}
	flat := 0.0
	for _, a := range b.axes {
		flat = max(flat, math.Abs(a.Z))
	}
	if flat < 0.999 {
		t.Errorf("it is on an edge: no axis is upright, the nearest has %.4f", flat)
	}
	at := *b
	run(&w, 5)
	if *b != at {
		t.Error("asleep, it has moved")
	}
}

func TestFrictionStopsASlidingCube(t *testing.T) {
	var w World
	b := w.Add(0.4, 1, Vec{Z: 0.2})
	b.Push(Vec{X: 2}, Vec{})
	run(&w, 10)
	want := 2.0 * 2 / (2 * friction * gravity)
	if !b.Asleep || b.Pos.X < 0.7*want || b.Pos.X > 1.3*want {
		t.Errorf("it slides %.2f m, want about %.2f", b.Pos.X, want)
	}
}

func TestAPileIsStable(t *testing.T) {
	var w World
	for i := range 4 {
		w.Add(0.4, 1, Vec{Z: 0.2 + 0.41*float64(i)}).Push(Vec{Z: -0.1}, Vec{})
	}
	run(&w, 15)
	for i := range w.Bodies {
		b := &w.Bodies[i]
		if want := 0.2 + 0.4*float64(i); math.Abs(b.Pos.Z-want) > 0.05 || math.Abs(b.Pos.X) > 0.1 {
			t.Errorf("cube %d is at %.2f, want it %.2f above the ground", i, b.Pos, want)
		}
	}
}

func TestCubesDoNotPassThroughEachOther(t *testing.T) {
	var w World
	for i := range 30 {
		w.Add(0.4, 1, Vec{X: 0.1 * float64(i%3), Y: 0.15 * float64(i%2), Z: 0.5 + 0.5*float64(i)}).wake()
	}
	run(&w, 10)
	for i := range w.Bodies {
		a := &w.Bodies[i]
		if low := a.Pos.Z - a.reach(Vec{Z: 1}); low < -0.05 {
			t.Errorf("cube %d is %.2f m below the ground", i, -low)
		}
		for j := range i {
			if d := a.Pos.Sub(w.Bodies[j].Pos).Length(); d < 0.33 {
				t.Errorf("the middles of cubes %d and %d are %.2f m apart, want at least 0.4 or so", i, j, d)
			}
		}
	}
}

func TestAHitWakesAndMarksABody(t *testing.T) {
	var w World
	w.Bodies = make([]Body, 0, 4)
	big := w.Add(2, 40, Vec{Z: 1})
	big.Touches = true
	first := w.Add(0.4, 1, Vec{X: 2, Z: 0.2})
	second := w.Add(0.4, 1, Vec{X: 2.6, Z: 0.2})
	apart := w.Add(0.4, 1, Vec{X: -5, Z: 0.2})
	big.Push(Vec{X: 200}, Vec{})
	run(&w, 0.5)
	if first.Asleep || !first.Touched || second.Asleep || !second.Touched {
		t.Errorf("the pushed cubes are not awake and marked: %+v, %+v", *first, *second)
	}
	if !apart.Asleep || apart.Touched {
		t.Error("a cube without a hit is awake")
	}
	run(&w, 20)
	if first.Touched || second.Touched || !first.Asleep || !second.Asleep {
		t.Errorf("they are not at rest: %+v, %+v", *first, *second)
	}
	if big.Asleep {
		t.Error("the touching one sleeps")
	}
}

func TestSidesOfContact(t *testing.T) {
	a := Body{Rot: Quat{W: 1}, half: 1}
	a.axes = a.Rot.axes()
	turned := Quat{W: 1}.turn(Vec{Z: 0.7}, 1)
	onEdge := Quat{W: 1}.turn(Vec{X: 0.9}, 1).turn(Vec{Z: 0.9}, 1)
	for _, c := range []struct {
		name   string
		at     Vec
		rot    Quat
		points int
		normal Vec
	}{
		{"side on side", Vec{X: 1.9}, Quat{W: 1}, 4, Vec{X: 1}},
		{"side on side, shifted", Vec{X: 1.9, Y: 1}, Quat{W: 1}, 4, Vec{X: 1}},
		{"turned on a side", Vec{Z: -1.95}, turned, 8, Vec{Z: -1}},
		{"apart", Vec{Y: 2.5}, Quat{W: 1}, 0, Vec{}},
		{"near, but not by their edges", Vec{X: 2.2, Y: 2.2}, turned, 0, Vec{}},
		{"an edge or a corner", Vec{X: 2.2}, onEdge, 1, Vec{X: 1}},
	} {
		b := Body{Pos: c.at, Rot: c.rot, half: 1}
		b.axes = b.Rot.axes()
		var x touch
		hit := collide(&x, &a, &b)
		if hit != (c.points > 0) || len(x.points) < c.points {
			t.Errorf("%s: %v with %d points, want %d", c.name, hit, len(x.points), c.points)
		}
		if hit && x.normal.Sub(c.normal).Length() > 0.1 {
			t.Errorf("%s: the normal is %.2f, want %.2f", c.name, x.normal, c.normal)
		}
	}
}

func TestTheSimulationIsDeterministic(t *testing.T) {
	var worlds [2]World
	for i := range worlds {
		for k := range 20 {
			tilted(&worlds[i], 0.5+0.3*float64(k))
		}
		run(&worlds[i], 5)
	}
	for i := range worlds[0].Bodies {
		if worlds[0].Bodies[i] != worlds[1].Bodies[i] {
			t.Fatalf("cube %d differs", i)
		}
	}
}

func TestAStepAllocatesNothing(t *testing.T) {
	var w World
	for k := range 20 {
		tilted(&w, 0.5+0.3*float64(k))
	}
	run(&w, 3)
	for i := range w.Bodies {
		w.Bodies[i].wake()
	}
	run(&w, 1)
	if n := testing.AllocsPerRun(60, w.Step); n != 0 {
		t.Errorf("a step allocates %v times, want 0", n)
	}
}
