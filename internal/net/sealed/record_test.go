package sealed

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"
)

// direction returns a sealer and the opener of its records.
func direction(tb testing.TB, keys *keyring) (*sealer, *opener) {
	tb.Helper()
	first, err := keys.phase(0)
	if err != nil {
		tb.Fatal(err)
	}
	s, o := new(sealer), new(opener)
	if err := errors.Join(s.open(keys, fromClient, first.id), o.open(keys, fromClient)); err != nil {
		tb.Fatal(err)
	}
	return s, o
}

// record returns the next record, of a datagram.
func (s *sealer) record(tb testing.TB) []byte {
	tb.Helper()
	b, err := s.seal(kindDatagram, s.sealed, []byte("data"))
	if err != nil {
		tb.Fatal(err)
	}
	return bytes.Clone(b)
}

// opens reports whether a copy of a record can be opened.
func (o *opener) opens(b []byte) bool {
	_, err := o.unseal(bytes.Clone(b))
	return err == nil
}

// A record returns its parts, and its header has the layout of docs/WIRE.md.
func TestARecordIsOpenedAsItWasSealed(t *testing.T) {
	for suite, key := range map[uint16]int{tls.TLS_AES_128_GCM_SHA256: 16, tls.TLS_AES_256_GCM_SHA384: 32, tls.TLS_CHACHA20_POLY1305_SHA256: 32} {
		keys := newKeyring(suite, session(1))
		if m, err := keys.phase(0); err != nil || len(m.keys[0]) != key {
			t.Errorf("suite %x has keys of %d bytes, want %d: %v", suite, len(m.keys[0]), key, err)
		}
		s, o := direction(t, keys)
		for i, size := range []int{0, 1, 8, 650, 1200} {
			kind, number, data := byte(kindDatagram+i%4), uint32(0xfffffffd+i), bytes.Repeat([]byte{7}, size)
			b, err := s.seal(kind, number, data)
			if err != nil || len(b) != size+Overhead {
				t.Fatalf("%d bytes take %d: %v", size, len(b), err)
			}
			if b[0] != 128 || b[1] != kind || binary.BigEndian.Uint16(b[2:]) != uint16(i) ||
				binary.BigEndian.Uint32(b[4:]) != number || binary.BigEndian.Uint32(b[8:]) != 0x0a0b0c01 {
				t.Errorf("the header is % x", b[:headerSize])
			}
			if !Is(b) || bytes.Contains(b, []byte{7, 7, 7, 7}) {
				t.Errorf("% x is no sealed record", b)
			}
			r, err := o.unseal(b)
			if err != nil || r.kind != kind || r.number != number || !bytes.Equal(r.packet[headerSize:], data) || !r.newest {
				t.Fatalf("%d bytes are opened as %+v: %v", size, r, err)
			}
			if &r.packet[0] != &b[0] {
				t.Error("a record is opened elsewhere")
			}
		}
	}
}

// QUIC's packets have the bit 0x40 in their first byte, DTLS and others are below 128.
func TestOnlyFirstBytesOfRTPAreRecords(t *testing.T) {
	for first := range 256 {
		if got, want := Is([]byte{byte(first)}), first >= 128 && first < 192; got != want {
			t.Errorf("a packet that begins with %d is a record: %v", first, got)
		}
	}
	if Is(nil) {
		t.Error("an empty packet is a record")
	}
}

// No changed bit, cut, or extension of a record is accepted, and none affects the record itself.
func TestAChangedRecordIsRefused(t *testing.T) {
	s, o := direction(t, keysOf(1))
	b := s.record(t)
	for i := range 8 * len(b) {
		c := bytes.Clone(b)
		c[i/8] ^= 1 << (i % 8)
		_, err := o.unseal(c)
		if err == nil {
			t.Fatalf("it is opened with bit %d changed", i)
		}
		if malformed := errors.Is(err, errRecord); malformed != (i < 8) || forged(err) == malformed {
			t.Errorf("with bit %d changed the error is %v", i, err)
		}
	}
	for n := range len(b) {
		if o.opens(b[:n]) {
			t.Errorf("it is opened without its last %d bytes", len(b)-n)
		}
		if _, err := o.unseal(bytes.Clone(b[:n])); errors.Is(err, errRecord) != (n < Overhead) {
			t.Errorf("of %d bytes the error is %v", n, err)
		}
	}
	if o.opens(append(bytes.Clone(b), 0)) {
		t.Error("it is opened with a byte more")
	}
	if !o.opens(b) {
		t.Error("it is not opened afterwards")
	}
}

// A record belongs to its connection and its direction.
func TestARecordOfOtherKeysIsForged(t *testing.T) {
	keys := keysOf(1)
	s, o := direction(t, keys)
	other, _ := direction(t, keysOf(2))
	back := new(sealer)
	if err := back.open(keys, fromServer, s.id); err != nil {
		t.Fatal(err)
	}
	for name, from := range map[string]*sealer{"another connection": other, "the other direction": back} {
		from.id = s.id
		if _, err := o.unseal(from.record(t)); !forged(err) {
			t.Errorf("a record of %s: %v", name, err)
		}
	}
}

// A record is opened once, in any order within the window, also hours later.
func TestARecordIsOpenedOnce(t *testing.T) {
	s, o := direction(t, keysOf(1))
	var all [][]byte
	for range 3 * replayWindow {
		all = append(all, s.record(t))
	}
	for i := 0; i < replayWindow; i += 2 {
		if !o.opens(all[i]) || o.opens(all[i]) {
			t.Fatalf("record %d is not opened once", i)
		}
	}
	for i := 1; i < replayWindow; i += 2 { // They are late.
		if r, err := o.unseal(bytes.Clone(all[i])); err != nil || r.newest != (i == replayWindow-1) || o.opens(all[i]) {
			t.Fatalf("late record %d is not opened once, or counts as the newest: %v", i, r.newest)
		}
	}
	if !o.opens(all[2*replayWindow]) || o.opens(all[replayWindow]) || !o.opens(all[replayWindow+1]) {
		t.Errorf("the window is not of %d records", replayWindow)
	}
	for range 1 << 16 { // Until the numbers come again.
		if !o.opens(s.record(t)) {
			t.Fatal("a new record is not opened")
		}
	}
	for i, b := range all {
		if o.opens(b) {
			t.Fatalf("record %d is opened after an hour", i)
		}
	}
}

// The sequence number wraps, while records are lost and reordered.
func TestSequenceNumbersWrap(t *testing.T) {
	s, o := direction(t, keysOf(1))
	rng := rand.New(rand.NewPCG(1, 2))
	var late [][]byte
	newest := -1
	for i := range 1<<17 + 1000 {
		b := s.record(t)
		if got := binary.BigEndian.Uint16(b[2:]); got != uint16(i) {
			t.Fatalf("record %d has the number %d", i, got)
		}
		near := i&0xffff < 300 || i&0xffff > 0xffff-300
		switch {
		case near && rng.IntN(2) == 0:
			late = append(late, b)
		case rng.IntN(1000) > 0 || i == 1<<16:
			r, err := o.unseal(b)
			if err != nil || !r.newest {
				t.Fatalf("record %d is not opened as the newest one: %v", i, err)
			}
			newest = i
		}
		if len(late) > 200 || len(late) > 0 && !near {
			for _, b := range late {
				r, err := o.unseal(b)
				if err != nil || r.newest && int(r.number) <= newest {
					t.Fatalf("late record %d after %d is opened as the newest: %v, %v", r.number, newest, r.newest, err)
				}
				newest = max(newest, int(r.number))
			}
			late = nil
		}
	}
}

// Each phase has its own keys. The peer turns to the next one with its first record; later records
// of the former phase are lost, and no other phase is accepted.
func TestPhases(t *testing.T) {
	keys := keysOf(1)
	keys.records = 3
	s, o := direction(t, keys)
	working, exports := keys.export, 0
	keys.export = func(label string, context []byte, length int) ([]byte, error) {
		exports++
		return working(label, context, length)
	}
	var all [][]byte
	for range 12 {
		all = append(all, s.record(t))
	}
	for i, b := range all {
		if b[1] != kindDatagram|byte(i/3&1)<<7 || b[3] != byte(i%3) {
			t.Errorf("record %d begins with % x", i, b[:4])
		}
	}
	forgeries := func() {
		t.Helper()
		before := exports
		defer func() {
			if n := exports - before; n > 1 {
				t.Errorf("the keys of the next phase are derived %d times", n)
			}
		}()
		for range 3 {
			c := bytes.Clone(all[0])
			c[1] ^= phaseBit
			if o.opens(c) {
				t.Fatal("a wrong phase is accepted")
			}
		}
	}
	forgeries()
	for _, i := range []int{0, 2, 4, 3, 5} { // Record 1 is late.
		r, err := o.unseal(bytes.Clone(all[i]))
		if err != nil || r.kind != kindDatagram || r.newest != (i != 3) {
			t.Fatalf("record %d is opened as %+v: %v", i, r, err)
		}
		forgeries()
	}
	for i, b := range all {
		opened := o.opens(b)
		if want := i >= 6; opened != want {
			t.Errorf("record %d is opened: %v, want %v", i, opened, want)
		}
	}
	for i := range all {
		if o.opens(all[i]) {
			t.Errorf("record %d is opened again", i)
		}
	}
	if o.phase != 3 || s.phase != 3 {
		t.Errorf("after 12 records the phases are %d and %d", s.phase, o.phase)
	}
	// A sealer that is two phases ahead has no key of the opener's.
	for range 6 {
		s.record(t)
	}
	if o.opens(s.record(t)) {
		t.Error("a record is opened by the keys of another phase")
	}
}

func TestPhasesAreLongEnoughAndShortEnough(t *testing.T) {
	if n := keysOf(1).records; n < 1<<20 || n > 1<<26 {
		t.Errorf("a key seals %d records", n)
	}
}

// A sealer without keys seals no record.
func TestAnExporterThatFails(t *testing.T) {
	keys := keysOf(1)
	keys.records = 2
	s, o := direction(t, keys)
	first, second := s.record(t), s.record(t)
	working := keys.export
	keys.export = func(string, []byte, int) ([]byte, error) { return nil, errors.New("no keys") }
	for range 2 {
		if b, err := s.seal(kindDatagram, 0, nil); err == nil {
			t.Errorf("sealed % x", b)
		}
	}
	turned := bytes.Clone(first)
	turned[1] ^= phaseBit
	if _, err := o.unseal(turned); err == nil || forged(err) {
		t.Error("a record of a phase without keys:", err)
	}
	if !o.opens(first) || !o.opens(second) {
		t.Error("records are not opened although the next phase has no keys")
	}
	if new(sealer).open(keys, fromClient, 1) == nil || new(opener).open(keys, fromClient) == nil {
		t.Error("a channel opens without keys")
	}
	keys.export = working
	if !o.opens(s.record(t)) {
		t.Error("the next phase does not begin once there are keys")
	}
}

// Sealing and opening allocate no memory.
func TestRecordsCostNoMemory(t *testing.T) {
	s, o := direction(t, keysOf(1))
	data := make([]byte, 650)
	round := func() {
		b, err := s.seal(kindDatagram, 1, data)
		if err == nil {
			_, err = o.unseal(b)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	round() // The buffers.
	if n := testing.AllocsPerRun(1000, round); n > 0 {
		t.Errorf("a record allocates %v times", n)
	}
}

func BenchmarkSeal650(b *testing.B) {
	s, _ := direction(b, keysOf(1))
	data := make([]byte, 650)
	b.SetBytes(650)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.seal(kindDatagram, 1, data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpen650(b *testing.B) {
	const batch = 1000
	s, o := direction(b, keysOf(1))
	data, records := make([]byte, 650), make([][]byte, batch)
	b.SetBytes(650)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%batch == 0 {
			b.StopTimer()
			for j := range records {
				sealed, err := s.seal(kindDatagram, 1, data)
				if err != nil {
					b.Fatal(err)
				}
				records[j] = append(records[j][:0], sealed...)
			}
			b.StartTimer()
		}
		if _, err := o.unseal(records[i%batch]); err != nil {
			b.Fatal(err)
		}
	}
}
