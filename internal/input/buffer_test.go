package input

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/seeds"
	"github.com/netloop/netloop/internal/wire"
)

// plainBuffer does what Buffer does in the plainest way.
type plainBuffer struct {
	came   map[uint64]bool
	waits  map[uint64]string
	newest uint64
	last   *string
	missed int
	counts Counts
	older  uint64 // of those missed
}

func (p *plainBuffer) has(step uint64) bool {
	return step <= p.newest && (p.newest-step >= 64 || p.came[step])
}

func (p *plainBuffer) take(steps []uint64, texts []string, done uint64) (c Counts, fresh bool) {
	for i, step := range steps {
		if p.has(step) {
			if i == 0 {
				c.Duplicate++
			}
			break
		}
		if step > done+Window {
			c.Ahead++
			continue
		}
		p.came[step] = true
		if step > p.newest {
			p.newest, fresh = step, true
		}
		if step <= done {
			c.Late++
		} else {
			p.waits[step] = texts[i]
		}
	}
	return c, fresh
}

func (p *plainBuffer) next(step uint64) (text string, missed int, ok bool) {
	if text, ok = p.waits[step]; ok {
		p.last, p.missed = &text, 0
		p.counts.Applied++
		delete(p.waits, step)
		return text, 0, true
	}
	if p.last == nil {
		return "", 0, false
	}
	p.missed++
	p.counts.Missed++
	return *p.last, p.missed, true
}

func (p *plainBuffer) status() (newest uint64, before uint16) {
	for i := range uint64(16) {
		if p.newest > i+1 && p.came[p.newest-1-i] {
			before |= 1 << i
		}
	}
	return p.newest, before
}

// TestABufferFollowsTheModel brings random packets to a buffer, and runs steps, beside a plain one.
func TestABufferFollowsTheModel(t *testing.T) {
	for seed := range seeds.Of(t, 300) {
		rng := rand.New(rand.NewPCG(seed, 5))
		f := opaque()
		b, r := new(Buffer), NewReader(f)
		model := &plainBuffer{came: map[uint64]bool{}, waits: map[uint64]string{}}
		done := rng.Uint64N(100)
		for n := range 300 {
			if rng.IntN(60) == 0 {
				b.Forget()
				model = &plainBuffer{came: map[uint64]bool{}, waits: map[uint64]string{}, counts: model.counts, older: model.counts.Missed}
			}
			var steps []uint64
			var texts []string
			step := done + 1 + rng.Uint64N(8)
			if rng.IntN(6) == 0 {
				step = done - min(done, rng.Uint64N(90)) + rng.Uint64N(160)
			}
			for len(steps) < 1+rng.IntN(Repeats) && step > 0 {
				steps, texts = append(steps, step), append(texts, string(rune('a'+n%26))+string(rune('0'+step%64)))
				gap := uint64(0)
				if rng.IntN(5) == 0 {
					gap = rng.Uint64N(40)
				}
				step -= min(step, 1+gap)
			}
			if rng.IntN(3) > 0 && len(steps) > 0 {
				counts, fresh := b.Take(r, packetOf(f, steps, texts), done)
				want, wantFresh := model.take(steps, texts, done)
				model.counts.Late += want.Late
				model.counts.Duplicate += want.Duplicate
				model.counts.Ahead += want.Ahead
				if counts != want || fresh != wantFresh {
					t.Fatalf("seed %d, %d: steps %d with %d done: %+v, %t, want %+v, %t", seed, n, steps, done, counts, fresh, want, wantFresh)
				}
			}
			for range rng.IntN(3) {
				done++
				got, missed, ok := b.Next(done)
				want, wantMissed, wantOK := model.next(done)
				if string(got) != want || missed != wantMissed || ok != wantOK {
					t.Fatalf("seed %d, %d: step %d: %q, %d, %t, want %q, %d, %t", seed, n, done, got, missed, ok, want, wantMissed, wantOK)
				}
				if view, of := b.View(); ok && (of != missed || view.From != uint64(want[1])) {
					t.Fatalf("seed %d, %d: step %d: view %+v, %d missed, want that of %q", seed, n, done, view, of, want)
				}
			}
			newest, before, ok := b.Status()
			if wantNewest, want := model.status(); newest != wantNewest || before != want || ok != (newest > 0) || b.Counts() != model.counts || b.Missed() != model.counts.Missed-model.older {
				t.Fatalf("seed %d, %d: status %d %b %t, %+v, want %d %b, %+v", seed, n, newest, before, ok, b.Counts(), wantNewest, want, model.counts)
			}
		}
	}
}

// packetOf writes a packet of messages, newest first. The view of each says which it is.
func packetOf(f *Form, steps []uint64, texts []string) []byte {
	list := make([]*item, len(steps))
	for i := range steps {
		from := uint64(texts[i][1])
		list[i] = &item{steps[i], View{From: from, To: from + 1}, codec.Values{Blobs: [][]byte{[]byte(texts[i])}}}
	}
	w := writer{form: f}
	return w.append(nil, MaxPacket, list)
}

// bitsOf writes numbers of so many bits each; 0 bits is a len.
func bitsOf(parts ...[2]uint64) []byte {
	var w wire.BitWriter
	for _, p := range parts {
		if p[1] == 0 {
			w.PutLen(p[0])
		} else {
			w.Put(p[0], uint(p[1]))
		}
	}
	w.Flush()
	return w.Bytes()
}

// What no writer writes is malformed, from there on: steps below 1, views that are none, messages
// that cannot be read, and a leaf that belongs to nobody.
func TestWhatNoWriterWritesIsMalformed(t *testing.T) {
	plain, message := formOf(t, control{}), opaque()
	head := func(step, older, gaps uint64) [][2]uint64 { return [][2]uint64{{step, 16}, {older, 4}, {gaps, 1}} }
	packet := func(head [][2]uint64, rest ...[2]uint64) []byte { return bitsOf(slices.Concat(head, rest)...) }
	none, same := [2]uint64{0, 1}, [2]uint64{0, 1}
	view := func(back, span, alpha uint64) [][2]uint64 {
		return [][2]uint64{{3, 2}, {wire.Zigzag(int64(back)), 0}, {span, 0}, {alpha, 6}}
	}
	back := func(from uint64) uint64 { return 9 - from } // of step 9
	zigzag := func(v int64) [2]uint64 { return [2]uint64{wire.Zigzag(v), 0} }
	line := func(advance int64) [2]uint64 { // As a Rice code of parameter 0.
		var w wire.BitWriter
		w.PutRice(wire.Zigzag(advance-places), 0)
		v, n := w.Few()
		return [2]uint64{v, uint64(n)}
	}
	for name, c := range map[string]struct {
		form   *Form
		packet []byte
		reads  int // inputs before the malformed one
		ok     bool
	}{
		"an input":             {message, packet(head(9, 0, 0), none, same), 1, true},
		"a message":            {message, packet(head(9, 0, 0), none, [2]uint64{1, 1}, [2]uint64{1, 0}, [2]uint64{'x', 8}), 1, true},
		"a bad message":        {message, packet(head(9, 0, 0), none, [2]uint64{1, 1}, [2]uint64{1, 0}, [2]uint64{0xff, 8}), 0, false},
		"a long message":       {message, packet(head(9, 0, 0), slices.Concat([][2]uint64{none, {1, 1}, {MaxSize + 1, 0}}, slices.Repeat([][2]uint64{{1, 8}}, MaxSize+1))...), 0, false},
		"the longest message":  {message, packet(head(9, 0, 0), slices.Concat([][2]uint64{none, {1, 1}, {MaxSize, 0}}, slices.Repeat([][2]uint64{{1, 8}}, MaxSize))...), 1, true},
		"step 1":               {message, packet(head(2, 1, 0), none, same, none, same), 2, true},
		"step 0":               {message, packet(head(1, 1, 0), none, same, none, same), 1, false},
		"a first step 0":       {message, packet(head(0, 0, 0), none, same), 0, false},
		"a gap to step 1":      {message, packet(head(9, 1, 1), none, same, [2]uint64{7, 0}, none, same), 2, true},
		"a gap to step 0":      {message, packet(head(9, 1, 1), none, same, [2]uint64{8, 0}, none, same), 1, false},
		"an owner":             {plain, packet(head(9, 0, 0), none, [2]uint64{1, 5}, [2]uint64{2, 0}), 0, false},
		"a view":               {message, packet(head(9, 0, 0), slices.Concat(view(2, 1, 63), [][2]uint64{same})...), 1, true},
		"a view from tick 0":   {message, packet(head(9, 0, 0), slices.Concat(view(9, 1, 0), [][2]uint64{same})...), 1, true},
		"a view at tick 0":     {message, packet(head(9, 0, 0), slices.Concat(view(9, 0, 0), [][2]uint64{same})...), 0, false},
		"a view before tick 0": {message, packet(head(9, 0, 0), slices.Concat(view(10, 2, 0), [][2]uint64{same})...), 0, false},
		"the widest view":      {message, packet(head(9, 0, 0), slices.Concat(view(2, maxSpan-1, 0), [][2]uint64{same})...), 1, true},
		"too wide a view":      {message, packet(head(9, 0, 0), slices.Concat(view(2, maxSpan, 0), [][2]uint64{same})...), 0, false},
		"the latest view":      {message, packet(head(9, 0, 0), [2]uint64{3, 2}, zigzag(9-(maxView-2)), [2]uint64{1, 0}, [2]uint64{0, 6}, same), 1, true},
		"too late a view":      {message, packet(head(9, 0, 0), [2]uint64{3, 2}, zigzag(9-(maxView-1)), [2]uint64{1, 0}, [2]uint64{0, 6}, same), 0, false},
		"a line":               {message, packet(head(9, 1, 0), slices.Concat(view(2, 1, 5), [][2]uint64{same, none, line(5 + 7*places), same})...), 2, true},
		"a line before tick 0": {message, packet(head(9, 1, 0), slices.Concat(view(2, 1, 5), [][2]uint64{same, none, line(6 + 7*places), same})...), 1, false},
		"a line without span":  {message, packet(head(9, 1, 0), slices.Concat(view(2, 0, 5), [][2]uint64{same, none, line(0), same})...), 1, false},
		"a far line":           {message, packet(head(9, 1, 0), slices.Concat(view(2, 1, 5), [][2]uint64{same, none, line(1 - maxAdvance), same})...), 2, true},
		"too far a line":       {message, packet(head(9, 1, 0), slices.Concat(view(2, 1, 5), [][2]uint64{same, none, line(-maxAdvance), same})...), 1, false},
		"a line far back":      {message, packet(head(9, 1, 0), slices.Concat(view(back(20000), 1, 0), [][2]uint64{same, none, line(maxAdvance - 1), same})...), 2, true},
		"too far back":         {message, packet(head(9, 1, 0), slices.Concat(view(back(20000), 1, 0), [][2]uint64{same, none, line(maxAdvance), same})...), 1, false},
		"a view that wraps":    {message, packet(head(9, 0, 0), [2]uint64{3, 2}, zigzag(-1), [2]uint64{1<<64 - 5, 0}, [2]uint64{0, 6}, same), 0, false},
		"nothing":              {message, nil, 0, false},
		"half a head":          {message, []byte{9, 0}, 0, false},
	} {
		b, r := new(Buffer), NewReader(c.form)
		counts, _ := b.Take(r, c.packet, 0)
		read := 0
		for i := range b.slots {
			if b.slots[i].step > 0 {
				read++
			}
		}
		if read != c.reads || counts.Malformed == 0 != c.ok {
			t.Errorf("%s: %d inputs are read, %+v", name, read, counts)
		}
	}
}

// A ring sends what may still have to come, and keeps what prediction asks for.
func TestARingSendsWhatMayHaveToCome(t *testing.T) {
	f := opaque()
	r := NewRing(f)
	reader := NewReader(f)
	sent := func() (steps []uint64) {
		packet := r.AppendPacket(nil, MaxPacket, r.Newest())
		if len(packet) == 0 {
			return nil
		}
		for reader.Begin(packet, 100); reader.Next(); reader.Read() {
			steps = append(steps, reader.Step())
		}
		return steps
	}
	want := func(what string, steps ...uint64) {
		t.Helper()
		if got := sent(); !slices.Equal(got, steps) {
			t.Errorf("%s: steps %d are sent, want %d", what, got, steps)
		}
	}
	want("nothing")
	if r.Newest() != 0 {
		t.Errorf("newest %d", r.Newest())
	}
	for step := uint64(1); step <= 3; step++ {
		r.Add(step, View{})
	}
	want("three", 3, 2, 1)
	r.Confirm(2, 0)
	want("2 has come", 3, 2, 1)
	r.Confirm(2, 1)
	want("1 has come", 3)
	r.Confirm(3, 0xffff)
	want("all have come")
	r.Add(4, View{})
	r.Add(6, View{})
	want("with a gap", 6, 4)
	r.Withdraw(6)
	want("without that which cannot travel", 4)
	r.Add(7, View{})
	r.Done(4)
	want("4 has run", 7)
	r.Done(2)
	want("an older snapshot says less", 7)
	for step := uint64(8); step <= 30; step++ {
		r.Add(step, View{})
	}
	if got := sent(); len(got) != Repeats || got[0] != 30 || got[Repeats-1] != 15 {
		t.Errorf("steps %d are sent, want the 16 newest", got)
	}
	for _, c := range []struct {
		step uint64
		kept bool
	}{{0, false}, {5, false}, {6, false}, {7, true}, {30, true}, {31, false}} {
		if _, kept := r.At(c.step); kept != c.kept {
			t.Errorf("the input of step %d is kept: %t", c.step, kept)
		}
	}
	r.Add(30+Kept, View{})
	want("beyond all that is kept", 30+Kept)
}

// An input is made once, and while there is room: so one that has not run can always be sent again.
func TestARingWantsEachInputOnce(t *testing.T) {
	r := NewRing(opaque())
	for _, x := range []struct {
		done, step uint64
		wants      bool
	}{
		{100, 100 + Kept + 1, false}, {100, 100 + Kept, true}, {100, 100 + Kept, false}, {100, 150, false}, {101, 101 + Kept, true},
		{101, 102, false}, {102, 102 + Kept, true},
	} {
		r.Done(x.done)
		if r.Wants(x.step) != x.wants {
			t.Errorf("when step %d has run, the input of step %d is wanted: %t", x.done, x.step, !x.wants)
		}
		if x.wants {
			r.Add(x.step, View{})
		}
	}
	if r.Withdraw(102 + Kept); r.Wants(102 + Kept) {
		t.Error("what cannot travel is made again")
	}
}

// A step that runs again sends its input again, and those before it; what was made for later steps
// waits for them, and is as it was.
func TestAStepThatRunsAgainSendsItsInputAgain(t *testing.T) {
	f := opaque()
	r, reader, again := NewRing(f), NewReader(f), new(Buffer)
	r.Done(100)
	for step := uint64(101); r.Wants(step); step++ {
		f.store(t, r.Add(step, View{}), []byte{byte(step)})
	}
	for step := uint64(101); step <= 100+Kept; step++ {
		again.Take(reader, r.AppendPacket(nil, MaxPacket, step), step-1)
		if got, missed, ok := again.Next(step); !ok || missed > 0 || got[0] != byte(step) {
			t.Errorf("step %d: %v, missed %d, want its input", step, got, missed)
		}
	}
}

// A packet that would be too large has as many of the newest inputs as fit.
func TestAPacketKeepsToItsLimit(t *testing.T) {
	f := opaque()
	r, reader := NewRing(f), NewReader(f)
	for step := uint64(1); step <= Repeats; step++ {
		v := r.Add(step, View{From: step * step, To: step*step + 9})
		v.Blobs[0] = slices.Repeat([]byte{byte(step)}, 40)
	}
	whole := len(r.AppendPacket(nil, MaxPacket, r.Newest()))
	for limit := range whole + 2 {
		head := []byte("head")
		packet := r.AppendPacket(head, limit, r.Newest())[len(head):]
		n := 0
		if len(packet) > 0 {
			for reader.Begin(packet, 1); reader.Next(); n++ {
				if v, _, ok := reader.Read(); !ok || reader.Step() != Repeats-uint64(n) || v.Blobs[0][39] != byte(Repeats-n) {
					t.Fatalf("limit %d: input %d of step %d", limit, n, reader.Step())
				}
			}
		}
		if len(packet) > limit || reader.Err() != nil || (n < Repeats) != (limit < whole) || n < limit/48-1 {
			t.Fatalf("limit %d of %d: %d bytes, %d inputs, %v", limit, whole, len(packet), n, reader.Err())
		}
	}
}

// The step of a packet is the one nearest to that which runs next.
func TestStepsAreWidened(t *testing.T) {
	for _, c := range [][3]uint64{
		{0, 5, 5}, {5, 0xffff, 0xffff}, {0x7fff, 0, 0}, {0x8000, 0, 0}, {0x8001, 0, 0x10000}, {0x10005, 3, 0x10003}, {0x10005, 0xfffe, 0xfffe},
		{1<<40 + 7, 6, 1<<40 + 6}, {1<<40 + 7, 0x8006, 1<<40 + 0x8006}, {1<<40 + 7, 0x8007, 1<<40 - 0x10000 + 0x8007},
	} {
		if got := widen(c[0], c[1]); got != c[2] {
			t.Errorf("near %#x the step that ends in %#x is %#x, want %#x", c[0], c[1], got, c[2])
		}
	}
}

// A view is rounded down to 64ths of the way, and what cannot travel is none.
func TestViewsAreRounded(t *testing.T) {
	for _, c := range [][2]View{
		{{3, 4, 0.5}, {3, 4, 0.5}},
		{{3, 4, 0.51}, {3, 4, 0.5}},
		{{3, 4, 0.999}, {3, 4, 63. / 64}},
		{{3, 4, 1}, {4, 4, 0}},
		{{3, 4, -0.1}, {}},
		{{4, 3, 0.5}, {}},
		{{3, 3 + maxSpan, 0}, {}},
		{{3, 2 + maxSpan, 0}, {3, 2 + maxSpan, 0}},
		{{maxView - 1, maxView, 0}, {}},
		{{maxView - 2, maxView - 1, 0}, {maxView - 2, maxView - 1, 0}},
		{{}, {}},
	} {
		if got := c[0].rounded(); got != c[1] {
			t.Errorf("%+v becomes %+v, want %+v", c[0], got, c[1])
		}
	}
}

// Views that lie too far apart for a line are written by themselves.
func TestViewsFarApartAreWrittenWhole(t *testing.T) {
	f := opaque()
	for _, ticks := range []uint64{maxAdvance/places - 1, maxAdvance / places, maxAdvance/places + 1} {
		for _, forth := range []bool{false, true} {
			newer, older := View{1 << 20, 1<<20 + 1, 0}, View{1<<20 - ticks, 1<<20 - ticks + 1, 0}
			if forth {
				newer, older = older, newer
			}
			w, r := writer{form: f}, NewReader(f)
			values := codec.Values{Blobs: [][]byte{nil}}
			r.Begin(w.append(nil, MaxPacket, []*item{{2, newer, values}, {1, older, values}}), 2)
			for _, want := range []View{newer, older} {
				if !r.Next() {
					t.Fatalf("%d ticks apart: %v", ticks, r.Err())
				}
				if _, got, ok := r.Read(); !ok || got != want {
					t.Errorf("%d ticks apart: %+v comes back as %+v, %v", ticks, want, got, r.Err())
				}
			}
		}
	}
}

// The status of a buffer says whether anything has come.
func TestTheFirstInputIsTold(t *testing.T) {
	f := opaque()
	b := new(Buffer)
	if _, _, ok := b.Status(); ok {
		t.Error("an empty buffer has a status")
	}
	b.Take(NewReader(f), packetOf(f, []uint64{1}, []string{"a0"}), 0)
	if newest, before, ok := b.Status(); newest != 1 || before != 0 || !ok {
		t.Errorf("step %d, %b, %t", newest, before, ok)
	}
}
