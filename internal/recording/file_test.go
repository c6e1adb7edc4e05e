package recording

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/transport"
)

// sample is a recording of a head and some records.
func sample(tb testing.TB, records ...string) []byte {
	tb.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, []byte("head"))
	if err != nil {
		tb.Fatal(err)
	}
	for _, r := range records {
		if err := w.Write([]byte(r)); err != nil {
			tb.Fatal(err)
		}
	}
	return b.Bytes()
}

// readAll returns the records up to the first error, which is io.EOF at a clean end.
func readAll(b []byte) (records []string, err error) { return readFrom(bytes.NewReader(b)) }

func readFrom(from io.Reader) (records []string, err error) {
	r, _, err := NewReader(from)
	if err != nil {
		return nil, err
	}
	for {
		record, err := r.Next()
		if err != nil {
			return records, err
		}
		records = append(records, string(record))
	}
}

func TestATruncatedFileIsValidUpToItsLastRecord(t *testing.T) {
	file := sample(t, "one", "", "three")
	if got, err := readAll(file); !errors.Is(err, io.EOF) || !reflect.DeepEqual(got, []string{"one", "", "three"}) {
		t.Fatalf("%q, error %v", got, err)
	}
	ends := map[int]int{} // offset of a record's end → records before it
	for n := range 4 {
		ends[len(sample(t, []string{"one", "", "three"}[:n]...))] = n
	}
	whole := -1
	for cut := range len(file) {
		if _, err := readFrom(io.MultiReader(bytes.NewReader(file[:cut]), iotest.ErrReader(errBroken))); !errors.Is(err, errBroken) {
			t.Fatalf("a read that fails at %d: %v", cut, err)
		}
		got, err := readAll(file[:cut])
		if n, ok := ends[cut]; ok {
			whole = n
			if !errors.Is(err, io.EOF) || len(got) != n {
				t.Fatalf("cut at %d: %q, error %v", cut, got, err)
			}
			continue
		}
		want := ErrTruncated
		if cut < len(magic) {
			want = ErrNotRecording
		}
		after := fmt.Sprintf("after %d ticks", whole)
		if !errors.Is(err, want) || len(got) != max(whole, 0) || whole >= 0 && !strings.HasSuffix(err.Error(), after) {
			t.Fatalf("cut at %d: %q, error %v", cut, got, err)
		}
	}
}

func TestEveryDamagedByteIsDetected(t *testing.T) {
	file := sample(t, "one", "two", "three")
	for i := range file {
		bad := bytes.Clone(file)
		bad[i] ^= 0x10
		if got, err := readAll(bad); errors.Is(err, io.EOF) {
			t.Fatalf("byte %d is damaged, and the file reads as %q", i, got)
		}
	}
}

func TestRecordsAreBounded(t *testing.T) {
	var file bytes.Buffer
	w, err := NewWriter(&file, make([]byte, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	sizes := []int{1<<16 + 1, 16 << 20}
	for _, size := range sizes {
		if err := w.Write(make([]byte, size)); err != nil {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	got, err := readAll(file.Bytes())
	if !errors.Is(err, io.EOF) || len(got) != len(sizes) || len(got[0]) != sizes[0] || len(got[1]) != sizes[1] {
		t.Errorf("%d records are read, error %v", len(got), err)
	}
	if err := w.Write(make([]byte, 16<<20+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("error %v", err)
	}
	long := binary.LittleEndian.AppendUint32(sample(t), 16<<20+1)
	if _, err := readAll(append(long, 1, 2, 3, 4)); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a length beyond the bound: %v", err)
	}
	if _, err := NewWriter(io.Discard, make([]byte, MaxHead+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("error %v", err)
	}
	if _, err := NewWriter(brokenWriter{}, nil); !errors.Is(err, errBroken) {
		t.Errorf("error %v", err)
	}
}

var errBroken = errors.New("disk full")

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func fullTick() Tick {
	return Tick{
		Input: loop.Input{Tick: 7, GameTime: time.Second, FixedSteps: 1, Fraction: 0.5, Wall: time.Unix(1, 2).UTC(), Dropped: 3, Epoch: loop.Epoch{Tick: 7, At: 5}, Overload: 1},
		Drain: true, DrainLimit: time.Second,
		Links:    []Link{{Client: 1, Facts: transport.LinkFacts{SRTT: 5, SlotFree: true, LastArrival: 6}}},
		Arrivals: []Arrival{{Kind: transport.MessageArrived, Client: 1, Message: transport.Message{Method: 2, Payload: []byte{1, 2}}, Decoded: true}, {Kind: transport.Acks, Acks: []transport.Range{{First: 1, Last: 2}}}, {Kind: transport.Gone, Closed: &transport.Closed{Code: 3, Text: "bye"}}},
		Posts:    []Post{{Method: 1, Msg: []byte{0}}}, Results: []Result{{Work: 1, Value: []byte{1}, Err: &Error{Text: "no"}}},
		Busy: []uint64{1}, Unrecorded: []string{"something"}, State: 1 << 63, Sent: 2,
	}
}

func TestTicksRoundTrip(t *testing.T) {
	want := fullTick()
	b, err := AppendTick(nil, &want)
	if err != nil {
		t.Fatal(err)
	}
	var got Tick
	if err := ReadTick(b, &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v, error %v", got, err)
	}
	none, err := AppendTick(nil, new(Tick))
	if err = errors.Join(err, ReadTick(none, &got)); err != nil || !reflect.DeepEqual(got, Tick{}) {
		t.Fatalf("an empty tick is %+v, error %v", got, err)
	}
	for n := range b {
		if ReadTick(b[:n], &got) == nil {
			t.Fatalf("a tick of which %d bytes are missing was read", len(b)-n)
		}
	}
}

// A layout names each field and each type, also those that types refer to, down to maxDepth.
func TestALayoutNamesAllTypes(t *testing.T) {
	text := func(of reflect.Type) string {
		var b strings.Builder
		describe(&b, of, 0)
		return b.String()
	}
	const want = "struct A mapstringsliceptrint8 At structtime.Time;"
	if got := text(reflect.TypeFor[struct {
		A  map[string][]*int8
		At time.Time
	}]()); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for of, word := range map[reflect.Type]string{
		reflect.TypeFor[nestedStruct](): "struct ", reflect.TypeFor[nestedSlice](): "slice", reflect.TypeFor[nestedArray](): "array",
		reflect.TypeFor[nestedMap](): "map", reflect.TypeFor[nestedKey](): "map", reflect.TypeFor[nestedPointer](): "ptr",
	} {
		levels := map[string]int{"struct ": 33, "array": 33, "slice": 66, "map": 66, "ptr": 66}[word]
		if of == reflect.TypeFor[nestedKey]() {
			levels = 33
		}
		if n := strings.Count(text(of), word); n != levels {
			t.Errorf("%v, which refers to itself, is described %d times, want %d", of, n, levels)
		}
	}
}

func TestHeadsOfOtherLayoutsAreRefused(t *testing.T) {
	h := Head{Schema: "x", Layout: Layout(), Config: []byte(`{"Name":"a"}`), Seed: 1 << 60, Notes: map[string]string{"a": "b"}}
	b, err := h.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ReadHead(b); err != nil || !reflect.DeepEqual(got, h) {
		t.Fatalf("%+v, error %v", got, err)
	}
	broken := Head{Config: []byte("{")}
	if _, err := broken.Append(nil); err == nil {
		t.Error("a head that is no JSON is written")
	}
	h.Layout++
	b, _ = h.Append(nil)
	for _, bad := range [][]byte{b, nil, []byte("{"), []byte("[]"), fmt.Appendf(nil, `{"Layout":"%d","Seed":"x"}`, Layout())} {
		if _, err := ReadHead(bad); !errors.Is(err, ErrNotRecording) {
			t.Errorf("%q: error %v", bad, err)
		}
	}
}

// FuzzRecording reads arbitrary bytes as a file of ticks.
func FuzzRecording(f *testing.F) {
	f.Fuzz(func(t *testing.T, b []byte) {
		r, head, err := NewReader(bytes.NewReader(b))
		if err != nil {
			return
		}
		_, _ = ReadHead(head)
		for range 100 {
			record, err := r.Next()
			if err != nil {
				return
			}
			var tick Tick
			_ = ReadTick(record, &tick)
		}
	})
}

// FuzzTick reads arbitrary bytes as a tick: encoded again the bytes may differ, but not the decoded
// tick.
func FuzzTick(f *testing.F) {
	f.Fuzz(func(t *testing.T, b []byte) {
		var tick, again Tick
		if ReadTick(b, &tick) != nil {
			return
		}
		out, err := AppendTick(nil, &tick)
		if err != nil {
			t.Fatal(err)
		}
		if err := ReadTick(out, &again); err != nil {
			t.Fatal(err)
		}
		if third, err := AppendTick(nil, &again); err != nil || !bytes.Equal(third, out) {
			t.Fatalf("%+v was written in two ways, error %v", tick, err)
		}
	})
}

var rewrite = flag.Bool("rewrite", false, "rewrite the seeds of the fuzz targets")

// The seeds of the fuzz targets are recordings and ticks of the current format, otherwise fuzzing
// would start at rejected input. go test ./internal/recording -run Seeds -rewrite rewrites them.
func TestFuzzSeedsHaveTheCurrentFormat(t *testing.T) {
	tick := fullTick()
	full, err := AppendTick(nil, &tick)
	empty, _ := AppendTick(nil, new(Tick))
	if err != nil {
		t.Fatal(err)
	}
	h := Head{Layout: Layout(), Config: []byte("{}")}
	head, _ := h.Append(nil)
	var file bytes.Buffer
	w, _ := NewWriter(&file, head)
	_ = w.Write(empty)
	_ = w.Write(full)
	for name, b := range map[string][]byte{
		"FuzzTick/full": full, "FuzzTick/empty": empty, "FuzzTick/cut": full[:len(full)/2],
		"FuzzRecording/whole": file.Bytes(), "FuzzRecording/torn": file.Bytes()[:file.Len()-5], "FuzzRecording/head": sample(t),
	} {
		path := filepath.Join("testdata", "fuzz", name)
		seed := []byte("go test fuzz v1\n[]byte(" + strconv.Quote(string(b)) + ")\n")
		if *rewrite {
			if err := os.WriteFile(path, seed, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if kept, err := os.ReadFile(path); err != nil || !bytes.Equal(kept, seed) {
			t.Errorf("%s differs from the current encoding, error %v; -rewrite rewrites it", path, err)
		}
	}
}
