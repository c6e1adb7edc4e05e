package input

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/testing/seeds"
	"github.com/netloop/netloop/internal/wire"
)

// hz60 is the length of a step in most tests, and window the number of steps with stored inputs.
const (
	hz60   = time.Second / 60
	window = 128
)

// plainBuffer is a simple model of Buffer.
type plainBuffer struct {
	came       map[uint64]bool
	waits      map[uint64]string
	newest     uint64
	last       string
	lastStep   uint64
	missed     int
	generation uint8
	turned     uint64
	counts     Counts
	older      uint64 // of those missed
}

func newPlain(counts Counts) *plainBuffer {
	return &plainBuffer{came: map[uint64]bool{}, waits: map[uint64]string{}, counts: counts, older: counts.Missed}
}

func (p *plainBuffer) has(step uint64) bool {
	return step <= p.newest && (p.newest-step >= window || p.came[step])
}

func (p *plainBuffer) take(steps []uint64, texts []string, generation uint8, done uint64) (c Counts, fresh bool) {
	if generation != p.generation {
		if (generation+1)%4 == p.generation && p.newest > 0 && done < p.turned+window {
			c.Late++
			return c, false
		}
		p.generation, p.turned, p.newest = generation, done, min(p.newest, done)
		for step := range p.came {
			if step > done {
				delete(p.came, step)
				delete(p.waits, step)
			}
		}
	}
	for i, step := range steps {
		if p.has(step) {
			if i == 0 {
				c.Duplicate++
			}
			break
		}
		if step > done+window {
			c.Ahead++
			continue
		}
		if step > p.newest {
			p.newest, fresh = step, true
		}
		if step <= done {
			c.Late++
		}
		if step+window > done {
			p.came[step], p.waits[step] = true, texts[i]
			delete(p.waits, step-min(step, window)) // The same slot.
			delete(p.came, step-min(step, window))
		}
	}
	return c, fresh
}

func (p *plainBuffer) next(step uint64) (text string, d Due, ok bool) {
	var late []uint64
	for at := range p.waits {
		if at < step && at+window > step {
			late = append(late, at)
		}
		if at < step {
			defer delete(p.waits, at)
		}
	}
	slices.Sort(late)
	own, ok := p.waits[step]
	switch newest := len(late) - 1; {
	case ok:
		p.last, p.lastStep, p.missed, d.Own = own, step, 0, true
		delete(p.waits, step)
	case newest >= 0 && late[newest] > p.lastStep:
		p.last, p.lastStep, p.missed = p.waits[late[newest]], late[newest], 0
		late = late[:newest]
	case p.lastStep == 0:
		return "", Due{}, false
	default:
		p.missed++
	}
	if d.Own {
		p.counts.Applied++
	} else {
		p.counts.Missed++
	}
	for _, at := range late {
		d.Late = append(d.Late, []byte(p.waits[at]))
	}
	d.Missed = p.missed
	return p.last, d, true
}

func (p *plainBuffer) status() (newest uint64, before uint16) {
	for i := range uint64(16) {
		if p.newest > i+1 && p.came[p.newest-1-i] {
			before |= 1 << i
		}
	}
	return p.newest, before
}

// TestABufferFollowsTheModel compares a buffer with the model over random packets and steps.
func TestABufferFollowsTheModel(t *testing.T) {
	for seed := range seeds.Of(t, 300) {
		rng := rand.New(rand.NewPCG(seed, 5))
		f := opaque()
		b, r := NewBuffer(window), NewReader(f, MinRepeats)
		model := newPlain(Counts{})
		var got Due
		done, generation := rng.Uint64N(100), uint8(rng.IntN(4))
		for n := range 300 {
			if rng.IntN(60) == 0 {
				b.Forget()
				model = newPlain(model.counts)
			}
			if rng.IntN(30) == 0 {
				generation = (generation + 1) % 4
			}
			of := (generation + uint8(max(rng.IntN(12)-8, 0))) % 4
			var steps []uint64
			var texts []string
			step := done + 1 + rng.Uint64N(8)
			if rng.IntN(6) == 0 {
				step = done - min(done, rng.Uint64N(180)) + rng.Uint64N(320)
			}
			for len(steps) < 1+rng.IntN(MinRepeats) && step > 0 {
				steps, texts = append(steps, step), append(texts, string(rune('a'+n%26))+string(rune('0'+step%64)))
				gap := uint64(0)
				if rng.IntN(5) == 0 {
					gap = rng.Uint64N(40)
				}
				step -= min(step, 1+gap)
			}
			if rng.IntN(3) > 0 && len(steps) > 0 {
				counts, fresh := b.Take(r, packetOf(f, of, steps, texts), done)
				want, wantFresh := model.take(steps, texts, of, done)
				model.counts.Add(want)
				if counts != want || fresh != wantFresh {
					t.Fatalf("seed %d, %d: steps %d with %d done: %+v, %t, want %+v, %t", seed, n, steps, done, counts, fresh, want, wantFresh)
				}
			}
			for range rng.IntN(3) {
				done++
				ok := b.Next(done, &got)
				text, want, wantOK := model.next(done)
				if ok != wantOK || ok && string(got.Message) != text || ok && got.Missed != want.Missed || ok && got.Own != want.Own ||
					!slices.EqualFunc(got.Late, want.Late, bytes.Equal) {
					t.Fatalf("seed %d, %d: step %d: %q, %+v, %t, want %q, %+v, %t", seed, n, done, got.Message, got, ok, text, want, wantOK)
				}
				if view, of := b.View(); ok && (of != want.Missed || view.From != uint64(text[1])) {
					t.Fatalf("seed %d, %d: step %d: view %+v, %d missed, want that of %q", seed, n, done, view, of, text)
				}
			}
			newest, before, ok := b.Status()
			if wantNewest, want := model.status(); newest != wantNewest || before != want || ok != (newest > 0) || b.Counts() != model.counts || b.Missed() != model.counts.Missed-model.older || b.Generation() != model.generation {
				t.Fatalf("seed %d, %d: status %d %b %t, %+v, want %d %b, %+v", seed, n, newest, before, ok, b.Counts(), wantNewest, want, model.counts)
			}
		}
	}
}

// packetOf writes a packet of messages, newest first. The view of each identifies it.
func packetOf(f *Form, generation uint8, steps []uint64, texts []string) []byte {
	list := make([]*item, len(steps))
	for i := range steps {
		from := uint64(texts[i][1])
		list[i] = &item{steps[i], View{From: from, To: from + 1}, codec.Values{Blobs: [][]byte{[]byte(texts[i])}}}
	}
	w := writer{form: f}
	return w.append(nil, MaxPacket, generation, list)
}

// bitsOf writes numbers with the given bits each; 0 bits is a length.
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

// Packets that no writer produces are malformed from the error on: steps below 1, invalid views,
// undecodable messages, and a used extra leaf.
func TestInvalidPacketsAreMalformed(t *testing.T) {
	plain, message := formOf(t, control{}), opaque()
	head := func(step, older, gaps uint64) [][2]uint64 {
		return [][2]uint64{{step, 16}, {older, 8}, {gaps, 1}, {0, 2}}
	}
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
		padding, v := w.Flush(), uint64(0)
		for i, b := range w.Bytes() {
			v |= uint64(b) << (8 * i)
		}
		return [2]uint64{v, uint64(8*len(w.Bytes()) - padding)}
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
		b, r := NewBuffer(window), NewReader(c.form, MinRepeats)
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

// A ring sends inputs that the server may lack, and stores those that prediction needs.
func TestARingSendsUnconfirmedInputs(t *testing.T) {
	f := opaque()
	r := NewRing(f, hz60)
	reader := NewReader(f, MinRepeats)
	sent := func() (steps []uint64) {
		packet := r.AppendPacket(nil, MaxPacket)
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
	r.Confirm(2, 0, 0)
	want("2 has come", 3, 2, 1)
	r.Confirm(2, 1, 0)
	want("1 has come", 3)
	r.Confirm(3, 0xffff, 0)
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
	if got := sent(); len(got) != MinRepeats || got[0] != 30 || got[MinRepeats-1] != 15 {
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
	r.Add(30+2*window, View{})
	want("beyond all that is kept", 30+2*window)
}

// An input is made once for each step, in ascending order, also without a status from the server:
// a sleeping room sends none, and the first key must wake it.
func TestARingWantsEachInputOnce(t *testing.T) {
	r := NewRing(opaque(), hz60)
	r.Done(100)
	for _, x := range []struct {
		step  uint64
		wants bool
	}{{101, true}, {101, false}, {100, false}, {99, false}, {150, true}, {150 + 1<<20, true}, {151, false}} {
		if r.Wants(x.step) != x.wants {
			t.Errorf("the input of step %d is wanted: %t", x.step, !x.wants)
		}
		if x.wants {
			r.Add(x.step, View{})
		}
	}
	if r.Withdraw(150 + 1<<20); r.Wants(150 + 1<<20) {
		t.Error("an unsendable input is made again")
	}
	r = NewRing(opaque(), hz60)
	r.Add(1, View{})
	if _, kept := r.At(1); !kept {
		t.Error("the first input is not kept")
	}
	r.Withdraw(1)
	if _, kept := r.At(1); kept {
		t.Error("a withdrawn input is kept")
	}
	// A confirmation of a step that had the same slot confirms no other input.
	r.Add(7, View{})
	if r.Confirm(7+2*window, 0, 0); len(r.AppendPacket(nil, 1000)) == 0 {
		t.Error("an unconfirmed input is not sent")
	}
	if r.Confirm(7, 0, 0); len(r.AppendPacket(nil, 1000)) != 0 {
		t.Error("a confirmed input is sent again")
	}
}

// When the steps are set back, the inputs of later steps are made again, earlier ones are sent
// again, and the server runs the new ones. It discards inputs of the older generation, waiting or
// in flight.
func TestInputsOfAnOlderGenerationDoNotRun(t *testing.T) {
	f := opaque()
	r, reader, b := NewRing(f, hz60), NewReader(f, MinRepeats), NewBuffer(window)
	add := func(step uint64, text string) { f.store(t, r.Add(step, View{}), []byte(text)) }
	for step := uint64(1); step <= 12; step++ {
		add(step, "old")
	}
	under := r.AppendPacket(nil, MaxPacket)
	b.Take(reader, under, 0)
	r.Confirm(12, 0xffff, 0)
	r.SetBack(4)
	if r.Confirm(12, 0xffff, 0) {
		t.Error("the older generation is confirmed")
	}
	if _, kept := r.At(5); kept || r.Wants(4) || !r.Wants(5) {
		t.Error("the input of step 5 is not made again, or that of step 4 is")
	}
	add(5, "new")
	add(6, "new")
	if counts, fresh := b.Take(reader, r.AppendPacket(nil, MaxPacket), 2); counts != (Counts{}) || !fresh {
		t.Errorf("of the new inputs %+v, fresh: %t", counts, fresh)
	}
	if counts, fresh := b.Take(reader, under, 2); counts != (Counts{Late: 1}) || fresh {
		t.Errorf("of an older packet %+v, fresh: %t", counts, fresh)
	}
	var d Due
	for step, want := range []string{3: "old", 4: "old", 5: "new", 6: "new", 7: "new"} {
		if b.Next(uint64(step), &d); step > 2 && (string(d.Message) != want || d.Own != (step < 7)) {
			t.Errorf("step %d: %q runs, its own: %t", step, d.Message, d.Own)
		}
	}
	if counts, _ := b.Take(reader, packetOf(f, 0, []uint64{140}, []string{"x0"}), 2+window); counts != (Counts{}) || b.Generation() != 0 {
		t.Error("the generation before the present one is older forever")
	}
	b = NewBuffer(window) // Only the first step has an input.
	b.Take(reader, packetOf(f, 1, []uint64{1}, []string{"x0"}), 0)
	if counts, _ := b.Take(reader, packetOf(f, 0, []uint64{1}, []string{"x0"}), 0); counts != (Counts{Late: 1}) {
		t.Errorf("of the generation before %+v", counts)
	}
}

// The newest late input runs unchanged in the next step without an input, once, and then counts as
// the last one; the others are passed along with the input that runs.
func TestALateInputRunsInTheNextStep(t *testing.T) {
	f := opaque()
	b, r := NewBuffer(window), NewReader(f, MinRepeats)
	take := func(done uint64, steps ...uint64) {
		texts := make([]string, len(steps))
		for i, step := range steps {
			texts[i] = string(rune('a'+step)) + "0"
		}
		b.Take(r, packetOf(f, 0, steps, texts), done)
	}
	next := func(step uint64, message string, own bool, missed int, late ...string) {
		t.Helper()
		var d Due
		b.Next(step, &d)
		got := make([]string, len(d.Late))
		for i := range d.Late {
			got[i] = string(d.Late[i][:1])
		}
		if string(d.Message[:1]) != message || d.Own != own || d.Missed != missed || !slices.Equal(got, late) {
			t.Errorf("step %d: %q, own %t, missed %d, late %q; want %q, %t, %d, %q", step, d.Message, d.Own, d.Missed, got, message, own, missed, late)
		}
	}
	take(0, 1)
	next(1, "b", true, 0)
	next(2, "b", false, 1)
	next(3, "b", false, 2)
	take(3, 3, 2)
	next(4, "d", false, 0, "c")
	next(5, "d", false, 1)
	take(5, 6, 5, 4)
	next(6, "g", true, 0, "e", "f")
	take(6, 8, 7)
	next(7, "h", true, 0)
	next(8, "i", true, 0)
	next(9, "i", false, 1)
	take(9, 11, 10) // 9 is lost
	next(10, "k", true, 0)
	take(10, 12, 9)
	next(11, "l", true, 0, "j")
	next(12, "m", true, 0)
	if c := b.Counts(); c.Late != 5 || c.Missed != 5 || c.Applied != 7 {
		t.Errorf("%+v", c)
	}
}

// Before the first input that runs there is none, and the first may be a late one.
func TestTheFirstInputMayBeLate(t *testing.T) {
	f := opaque()
	b, r := NewBuffer(window), NewReader(f, MinRepeats)
	var d Due
	if b.Next(500, &d) {
		t.Error("there is an input before the first")
	}
	b.Take(r, packetOf(f, 0, []uint64{500 - window}, []string{"a0"}), 500)
	if b.Next(501, &d) {
		t.Error("an input as old as the window runs")
	}
	b.Take(r, packetOf(f, 0, []uint64{501}, []string{"b0"}), 501)
	if ok := b.Next(502, &d); !ok || string(d.Message) != "b0" || d.Own || d.Missed != 0 {
		t.Errorf("%+v, %t", d, ok)
	}
}

// A room may sleep while all inputs, waiting or late, are those of idle players.
func TestOnlyIdleWaitingInputsAreStill(t *testing.T) {
	f := opaque()
	for text, want := range map[string]bool{"": true, "x": false} {
		b, r := NewBuffer(window), NewReader(f, MinRepeats)
		w := writer{form: f}
		b.Take(r, w.append(nil, MaxPacket, 0, []*item{{7, View{}, codec.Values{Blobs: [][]byte{[]byte(text)}}}}), 3)
		if b.Still(3, nil) != want || b.Still(6, nil) != want || !b.Still(7, nil) {
			t.Errorf("%q: still after 3: %t, 6: %t, 7: %t", text, b.Still(3, nil), b.Still(6, nil), b.Still(7, nil))
		}
	}
	b, r := NewBuffer(window), NewReader(f, MinRepeats)
	b.Take(r, packetOf(f, 0, []uint64{7}, []string{"x0"}), 9)
	if b.Still(9, nil) {
		t.Error("a late input is idle")
	}
}

// Windows cover two seconds, and packets a quarter of one, at every rate.
func TestWindowsCoverTwoSeconds(t *testing.T) {
	for hz := 1; hz <= 1000; hz++ {
		step := time.Second / time.Duration(hz)
		n, repeats := Window(step), Repeats(step)
		if time.Duration(n)*step < Span-step || n > MinWindow && time.Duration(n)*step > 2*Span || n&(n-1) != 0 {
			t.Errorf("%d Hz: a window of %d steps", hz, n)
		}
		if time.Duration(repeats+1)*step < repeated || repeats > MinRepeats && time.Duration(repeats)*step > repeated {
			t.Errorf("%d Hz: %d inputs in a packet", hz, repeats)
		}
	}
	if n, repeats := Window(1), Repeats(0); n != MaxWindow || repeats != MaxRepeats {
		t.Errorf("of a server that announces any rate: %d, %d", n, repeats)
	}
}

// A packet that would be too large has as many of the newest inputs as fit.
func TestAPacketIsWithinItsLimit(t *testing.T) {
	f := opaque()
	r, reader := NewRing(f, hz60), NewReader(f, MinRepeats)
	for step := uint64(1); step <= MinRepeats; step++ {
		v := r.Add(step, View{From: step * step, To: step*step + 9})
		v.Blobs[0] = slices.Repeat([]byte{byte(step)}, 40)
	}
	whole := len(r.AppendPacket(nil, MaxPacket))
	for limit := range whole + 2 {
		head := []byte("head")
		packet := r.AppendPacket(head, limit)[len(head):]
		n := 0
		if len(packet) > 0 {
			for reader.Begin(packet, 1); reader.Next(); n++ {
				if v, _, ok := reader.Read(); !ok || reader.Step() != MinRepeats-uint64(n) || v.Blobs[0][39] != byte(MinRepeats-n) {
					t.Fatalf("limit %d: input %d of step %d", limit, n, reader.Step())
				}
			}
		}
		if len(packet) > limit || reader.Err() != nil || (n < MinRepeats) != (limit < whole) || n < limit/48-1 {
			t.Fatalf("limit %d of %d: %d bytes, %d inputs, %v", limit, whole, len(packet), n, reader.Err())
		}
	}
}

// The step of a packet is the one nearest to the next step.
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
