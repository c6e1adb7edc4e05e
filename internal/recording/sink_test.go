package recording

import (
	"bytes"
	"errors"
	"testing"
)

func TestASinkWritesAllRecordsInOrder(t *testing.T) {
	var out bytes.Buffer
	s := NewSink(&out)
	var want []byte
	for i := range 1000 {
		b := bytes.Repeat([]byte{byte(i)}, i%7)
		want = append(want, b...)
		if n, err := s.Write(b); err != nil || n != len(b) {
			t.Fatalf("%d bytes, error %v", n, err)
		}
	}
	if err := s.Close(); err != nil || !bytes.Equal(out.Bytes(), want) {
		t.Fatalf("%d bytes of %d, error %v", out.Len(), len(want), err)
	}
	if _, err := s.Write([]byte{1}); err == nil {
		t.Error("a closed sink accepts more")
	}
}

// blockedWriter is an output that blocks.
type blockedWriter struct{ free chan struct{} }

func (s blockedWriter) Write(b []byte) (int, error) { <-s.free; return len(b), nil }

func TestASinkIsBoundedAndNeverBlocks(t *testing.T) {
	out := blockedWriter{make(chan struct{})}
	const limit = 1 << 16
	s := newSink(out, limit)
	block := make([]byte, limit/8)
	var err error
	n := 0
	for ; err == nil; n++ {
		_, err = s.Write(block)
	}
	// The output may hold one batch.
	if !errors.Is(err, ErrBehind) || n > 2*limit/len(block)+1 {
		t.Errorf("after %d writes: %v", n, err)
	}
	close(out.free)
	if err := s.Close(); !errors.Is(err, ErrBehind) {
		t.Errorf("error %v", err)
	}
}

func TestASinkReportsTheCauseOfItsFailure(t *testing.T) {
	s := NewSink(brokenWriter{})
	for {
		if _, err := s.Write([]byte{1}); err != nil {
			if !errors.Is(err, errBroken) {
				t.Errorf("error %v", err)
			}
			break
		}
	}
	if err := s.Close(); !errors.Is(err, errBroken) {
		t.Errorf("error %v", err)
	}
}
