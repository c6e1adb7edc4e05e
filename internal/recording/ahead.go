package recording

import "iter"

// Decoded is a tick of a file, and the offset of its record in the file, for NewReaderAt.
type Decoded struct {
	Tick   *Tick
	Offset int64
}

const (
	// maxAhead is the number of ticks that are decoded before a replay needs them: some
	// milliseconds of a replay, for which the scheduler of a busy machine may suspend the decoder.
	maxAhead = 32
	// perBatch is the number of ticks that the decoder passes on together, so that one goroutine
	// rarely wakes the other.
	perBatch = 8
)

// Ahead iterates over the ticks that in has not returned yet. The last pair has an error, and no
// tick: io.EOF at the end of the file. Decoding takes a fifth of the time of a replay, so another
// goroutine does it in parallel. It has ended when the loop has ended.
func Ahead(in *Reader) iter.Seq2[Decoded, error] {
	return func(yield func(Decoded, error) bool) {
		// One batch more is in the hands of the decoder.
		batches, stop := make(chan batch, maxAhead/perBatch-1), make(chan struct{})
		go decodeAhead(in, batches, stop)
		defer func() {
			close(stop)
			for range batches { //nolint:revive // It waits for the end of decodeAhead.
			}
		}()
		for b := range batches {
			for i := range b.ticks {
				if !yield(b.ticks[i], nil) {
					return
				}
			}
			if b.err != nil {
				yield(Decoded{}, b.err)
			}
		}
	}
}

// batch is the next ticks of a file, and the error that follows them.
type batch struct {
	ticks []Decoded
	err   error
}

// decodeAhead sends the ticks of a file until the first error, or until stop is closed.
func decodeAhead(in *Reader, to chan<- batch, stop <-chan struct{}) {
	defer close(to)
	for b := (batch{}); b.err == nil; b.ticks = nil {
		for len(b.ticks) < perBatch && b.err == nil {
			var t Decoded
			if t, b.err = in.decode(); b.err == nil {
				b.ticks = append(b.ticks, t)
			}
		}
		select {
		case to <- b:
		case <-stop:
			return
		}
	}
}

// decode decodes the next tick.
func (r *Reader) decode() (Decoded, error) {
	b, err := r.Next()
	if err != nil {
		return Decoded{}, err
	}
	t := new(Tick)
	return Decoded{t, r.Offset()}, ReadTick(b, t)
}
