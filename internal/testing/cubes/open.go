package cubes

import (
	"bufio"
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/ulikunitz/xz"
)

// Source yields frames in order, and io.EOF after the last one.
type Source interface{ Next(*Frame) error }

// maxFrames limits a capture to ten minutes, a gigabyte: a few kilobytes of xz can contain any
// number of frames.
const maxFrames = 10 * 60 * Rate

// field is a capture of ten seconds: the player's cube rolls through the field, and for some
// seconds attracts near cubes, which tumble along and over each other.
//
//go:embed field.xz
var field []byte

// File is a capture in a file. It is not safe for concurrent use.
type File struct {
	file  io.Closer
	in    io.Reader
	frame [frameBytes]byte
	read  int
	most  int // frames
}

var xzMagic = []byte("\xfd7zXZ\x00")

// Open opens a capture, plain or compressed with xz, as its first bytes show. Without a path it
// opens the capture of this package.
func Open(path string) (*File, error) {
	if path == "" {
		in, err := unpacked(bytes.NewReader(field))
		return &File{file: io.NopCloser(in), in: in, most: maxFrames}, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cubes: %w", err)
	}
	in, err := unpacked(file)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cubes: %s: %w", path, err), file.Close())
	}
	return &File{file: file, in: in, most: maxFrames}, nil
}

// unpacked decompresses the file if it is compressed. The reader of the frames limits the read
// bytes. The file chooses the size of the dictionary, at most 4 GiB of address space, of which
// only the used part takes memory.
func unpacked(file io.Reader) (io.Reader, error) {
	in := bufio.NewReaderSize(file, 1<<16)
	if head, _ := in.Peek(len(xzMagic)); !bytes.Equal(head, xzMagic) {
		return in, nil
	}
	return xz.NewReader(in)
}

// Next implements Source: it reads the next frame and checks each of its fields. After an error the
// file cannot be read further.
func (f *File) Next(to *Frame) error {
	switch n, err := io.ReadFull(f.in, f.frame[:]); {
	case err == io.EOF && f.read > 0:
		return io.EOF
	case err == io.EOF:
		return errors.New("cubes: the capture is empty")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("cubes: the capture breaks off: of frame %d there are %d of %d bytes", f.read, n, frameBytes)
	case err != nil:
		return fmt.Errorf("cubes: frame %d: %w", f.read, err)
	case f.read == f.most:
		return fmt.Errorf("cubes: the capture has more than %d frames", f.most)
	}
	if err := to.unpack(f.frame[:]); err != nil {
		return fmt.Errorf("cubes: frame %d: %w", f.read, err)
	}
	f.read++
	return nil
}

// Close closes the file.
func (f *File) Close() error { return f.file.Close() }
