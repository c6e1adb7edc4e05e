package transport

import (
	"errors"
	"math/bits"

	"google.golang.org/protobuf/encoding/protowire"
)

var errAcks = errors.New("transport: malformed acknowledgement ranges")

// maxAckRuns is the number of runs that encode MaxAckRanges ranges: one run of acknowledged ids for
// each range, and one run of missing ids between two ranges.
const maxAckRuns = 2*MaxAckRanges - 1

// maxAckField bounds the encoded field: two tags with lengths, the newest id, and runs of at most 2
// bytes each.
const maxAckField = 3 + 11 + 3 + 2*maxAckRuns

// recent is the set of seen numbers among the newest number and the AckWindow-1 numbers below it: a
// ring with one bit per number.
type recent struct {
	newest uint64
	bits   [AckWindow / 64]uint64
}

// recent is used for packet ids and for datagram numbers: this line compiles only if AckWindow and
// DuplicateWindow are equal.
var _ [AckWindow]struct{} = [DuplicateWindow]struct{}{}

// raise makes a higher number the newest number, and clears the bits of the numbers in between.
func (r *recent) raise(number uint64) {
	if number-r.newest >= AckWindow {
		clear(r.bits[:])
	} else {
		for n := r.newest; n != number; { // The highest number has no successor.
			n++
			r.bits[n/64%uint64(len(r.bits))] &^= 1 << (n % 64)
		}
	}
	r.newest = number
}

// mark adds a number that is at most AckWindow-1 below the newest, and reports whether it was
// missing.
func (r *recent) mark(number uint64) bool {
	w, m := &r.bits[number/64%uint64(len(r.bits))], uint64(1)<<(number%64)
	was := *w&m != 0
	*w |= m
	return !was
}

// ackSet holds which of the last AckWindow state packets arrived. It belongs to the client's owner.
type ackSet struct {
	any bool
	recent
}

// add adds a packet to the set and reports whether the set changed.
func (a *ackSet) add(id uint64) bool {
	switch {
	case !a.any:
		a.any, a.newest = true, id
	case id > a.newest:
		a.raise(id)
	case a.newest-id >= AckWindow:
		return false // Older than the window.
	}
	return a.mark(id)
}

// run returns the number of consecutive ids, from id downwards, that are in the set, or that are
// not in it if in is false. The result is at most limit.
func (a *ackSet) run(id uint64, in bool, limit int) int {
	n := 0
	for n < limit {
		off := int(id % 64)
		w := a.bits[id/64%uint64(len(a.bits))]
		if !in {
			w = ^w
		}
		k := min(bits.LeadingZeros64(^(w << (63 - off))), off+1)
		n += k
		if k <= off || uint64(k) > id {
			break
		}
		id -= uint64(k)
	}
	return min(n, limit)
}

// appendField appends the set as the datagram's field, newest ids first, unless it is empty. Ranges
// after the first MaxAckRanges are left out, because earlier datagrams have sent them many times.
func (a *ackSet) appendField(dst []byte) []byte {
	if !a.any {
		return dst
	}
	left := AckWindow
	if a.newest < AckWindow {
		left = int(a.newest) + 1
	}
	var runs [maxAckRuns]uint16
	n, size, in := 0, 0, true
	for id := a.newest; n < maxAckRuns && left > 0; n++ {
		k := a.run(id, in, left)
		runs[n] = uint16(k)
		size += protowire.SizeVarint(uint64(k))
		left -= k
		id -= uint64(k)
		in = !in
	}
	if n%2 == 0 { // The last run has missing ids and is not needed.
		n--
		size -= protowire.SizeVarint(uint64(runs[n])) //nolint:gosec // There is at least one.
	}
	body := sizeField(a.newest) + 1 + protowire.SizeBytes(size)
	dst = protowire.AppendTag(dst, fieldAcks, protowire.BytesType)
	dst = protowire.AppendVarint(dst, uint64(body))
	dst = appendField(dst, 1, a.newest)
	dst = protowire.AppendTag(dst, 2, protowire.BytesType)
	dst = protowire.AppendVarint(dst, uint64(size))
	for _, k := range runs[:n] {
		dst = protowire.AppendVarint(dst, uint64(k))
	}
	return dst
}

// parseAcks reads an AckRanges message and appends its ranges to dst, newest first.
func parseAcks(b []byte, dst []Range) ([]Range, error) {
	var newest uint64
	var runs []byte
	w := walk(b, &acksFields)
	for w.next() {
		switch w.num {
		case 1:
			newest = w.value
		case 2:
			runs = w.bytes
		}
	}
	if w.err != nil {
		return dst, w.err
	}
	return appendRanges(dst, newest, runs)
}

// appendRanges converts runs into ranges.
func appendRanges(dst []Range, newest uint64, packed []byte) ([]Range, error) {
	span, n := uint64(0), 0
	for ; len(packed) > 0; n++ {
		k, size := protowire.ConsumeVarint(packed)
		if size < 0 || k == 0 || k > AckWindow || n == maxAckRuns {
			return dst, errAcks
		}
		packed = packed[size:]
		if span+k > AckWindow || span+k-1 > newest {
			return dst, errAcks
		}
		if n%2 == 0 {
			dst = append(dst, Range{First: newest - (span + k - 1), Last: newest - span})
		}
		span += k
	}
	if n%2 == 0 {
		return dst, errAcks
	}
	return dst, nil
}

// dupWindow recognises repeated datagram numbers among the last DuplicateWindow. Before the first
// datagram its newest number is 0.
type dupWindow struct{ recent }

// begin marks all numbers before first as seen: they belong to another session.
func (d *dupWindow) begin(first uint64) {
	d.newest = max(first, 1) - 1
	for i := range d.bits {
		d.bits[i] = ^uint64(0)
	}
}

// check adds a datagram number and reports whether it is new; if the number is not new, it returns
// the reason to drop the datagram.
func (d *dupWindow) check(number uint64) (Drop, bool) {
	switch {
	case number > d.newest:
		d.raise(number)
	case d.newest-number >= DuplicateWindow:
		return DropStale, false
	}
	if !d.mark(number) {
		return DropDuplicate, false
	}
	return 0, true
}
