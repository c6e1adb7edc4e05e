package recording

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
)

// magic begins each file; its last byte is the version of the format.
const magic = "netloop recording\n\x02"

const (
	// MaxHead limits the head, in bytes: room and settings are a few kilobytes.
	MaxHead = 1 << 20
	// MaxRecord limits the record of one tick, in bytes. A tick has the arrivals since the previous
	// tick: 16 MiB are the arrivals of one second from a thousand clients that send as much as
	// permitted.
	MaxRecord = 16 << 20
)

// The errors of a file. Reader.Next wraps them with the number of ticks read before.
var (
	// ErrNotRecording is returned for a file of another kind or version.
	ErrNotRecording = errors.New("not a recording of this version of netloop")
	// ErrTruncated is returned if a file ends within a record. The records before it are valid.
	ErrTruncated = errors.New("file is truncated")
	// ErrCorrupt is returned for a record with a wrong checksum or a length over its limit.
	ErrCorrupt = errors.New("file is damaged")
	// ErrTooLarge is returned by a Writer for a head or a record over its limit.
	ErrTooLarge = errors.New("record is too large")
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// prefix is the size of a record's header: its length and the checksum.
const prefix = 8

// Writer writes a recording, with one Write of the underlying writer per record, so that a crash
// leaves few incomplete records.
type Writer struct {
	w   io.Writer
	buf []byte
}

// NewWriter starts a recording.
func NewWriter(w io.Writer, head []byte) (*Writer, error) {
	out := &Writer{w: w}
	return out, out.write([]byte(magic), head, MaxHead)
}

// Write appends a record.
func (w *Writer) Write(record []byte) error { return w.write(nil, record, MaxRecord) }

func (w *Writer) write(before, record []byte, limit int) error {
	if len(record) > limit {
		return fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(record), limit)
	}
	w.buf = append(w.buf[:0], before...)
	w.buf = binary.LittleEndian.AppendUint32(w.buf, uint32(len(record)))
	w.buf = binary.LittleEndian.AppendUint32(w.buf, checksum(record))
	w.buf = append(w.buf, record...)
	_, err := w.w.Write(w.buf)
	return err
}

// checksum covers the length too, so that a record that lost its end is detected even if zeros
// follow.
func checksum(record []byte) uint32 {
	var n [4]byte
	binary.LittleEndian.PutUint32(n[:], uint32(len(record)))
	return crc32.Update(crc32.Checksum(n[:], castagnoli), castagnoli, record)
}

// Reader reads a recording.
type Reader struct {
	r     *bufio.Reader
	buf   bytes.Buffer
	count uint64 // records read
	at    int64  // offset of the last record
	next  int64  // offset of the next one
}

// NewReader opens a recording and returns its head.
func NewReader(r io.Reader) (*Reader, []byte, error) {
	in := &Reader{r: bufio.NewReaderSize(r, 1<<16), next: int64(len(magic))}
	var begin [len(magic)]byte
	switch _, err := io.ReadFull(in.r, begin[:]); {
	case errors.Is(err, io.EOF):
		return nil, nil, fmt.Errorf("%w: it is empty", ErrNotRecording)
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return nil, nil, err
	case string(begin[:]) != magic: // Also if the file is shorter.
		return nil, nil, ErrNotRecording
	}
	head, err := in.read(MaxHead)
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = ErrTruncated
		}
		return nil, nil, fmt.Errorf("%w in its head", err)
	}
	return in, append([]byte(nil), head...), nil
}

// Next returns the next record, valid until the next call. At the end it returns io.EOF, or
// ErrTruncated if less than a record is left.
func (r *Reader) Next() ([]byte, error) {
	record, err := r.read(MaxRecord)
	switch {
	case err == nil:
		r.count++
		return record, nil
	case errors.Is(err, io.EOF):
		return nil, io.EOF
	}
	return nil, fmt.Errorf("%w after %d ticks", err, r.count)
}

func (r *Reader) read(limit int) ([]byte, error) {
	var head [prefix]byte
	if _, err := io.ReadFull(r.r, head[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, ErrTruncated
		}
		return nil, err
	}
	size := int(binary.LittleEndian.Uint32(head[:]))
	if size > limit {
		return nil, ErrCorrupt
	}
	if err := r.fill(size); err != nil {
		return nil, err
	}
	if checksum(r.buf.Bytes()) != binary.LittleEndian.Uint32(head[4:]) {
		return nil, ErrCorrupt
	}
	r.at, r.next = r.next, r.next+prefix+int64(size)
	return r.buf.Bytes(), nil
}

// Offset returns the offset in the file of the record that Next has returned, for NewReaderAt.
func (r *Reader) Offset() int64 { return r.at }

// NewReaderAt returns a reader of the records from an offset of a file on.
func NewReaderAt(file io.ReaderAt, offset int64) *Reader {
	rest := io.NewSectionReader(file, offset, math.MaxInt64-offset)
	return &Reader{r: bufio.NewReader(rest), next: offset}
}

// fill reads size bytes. It allocates no more memory than the file has bytes, so that a damaged
// length does no harm.
func (r *Reader) fill(size int) error {
	r.buf.Reset()
	_, err := io.CopyN(&r.buf, r.r, int64(size))
	if errors.Is(err, io.EOF) {
		return ErrTruncated
	}
	return err
}
