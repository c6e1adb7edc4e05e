package replica

import (
	"math/bits"
	"testing"

	"github.com/netloop/netloop/internal/netvar/state"
)

// The scratch for checking packets doubles up to a megabyte, and exceeds that only for a single
// value that needs more.
func TestTheScratchIsBounded(t *testing.T) {
	var words []uint64
	var headers [][]byte
	for n := 1; n <= 300; n++ {
		words, headers = lengthen(words, 1000), lengthen(headers, 1000)
		// A full array is not copied, so the second array begins with the second value, the third
		// with the fourth.
		want := min(8000<<(bits.Len(uint(n))-1), 1<<20)
		if room := 8 * cap(words); room != want {
			t.Fatalf("after %d values the words have room for %d bytes, want %d", n, room, want)
		}
	}
	if room := 24 * cap(headers); room > 1<<20 || room < 1<<20-24 {
		t.Errorf("the headers have room for %d bytes", room)
	}
	if words = lengthen(words, 1<<18); len(words) != 1<<18 || cap(words) != 1<<18 {
		t.Errorf("a value of %d words has room for %d", 1<<18, cap(words))
	}
}

// TestAuditFindsBytesThatAreNotCounted changes each counter of Size.
func TestAuditFindsBytesThatAreNotCounted(t *testing.T) {
	for name, change := range map[string]func(*Replica){
		"objects": func(r *Replica) { r.stored++ },
		"fewer":   func(r *Replica) { r.stored-- },
		"events":  func(r *Replica) { r.events.bytes++ },
		"handed":  func(r *Replica) { r.handed.kept++ },
		"awaited": func(r *Replica) { r.awaited++ },
		"scratch": func(r *Replica) { r.blobs = [][]byte{{1}} },
		"staged":  func(r *Replica) { r.staged = append(r.staged, stagedRecord{object: new(state.Object)})[:0] },
	} {
		r := New(newClient(t).table)
		if err := r.Audit(); err != nil {
			t.Fatal(err)
		}
		if change(r); r.Audit() == nil {
			t.Errorf("%s: nothing is found", name)
		}
	}
}
