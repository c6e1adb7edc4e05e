package cubes

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/ulikunitz/xz"
)

// Source yields frames in their order, and after the last io.EOF.
type Source interface{ Next(*Frame) error }

// maxFrames bounds a capture to ten minutes, a gigabyte: a few kilobytes of xz can hold any number
// of frames.
const maxFrames = 10 * 60 * Rate

// File is a capture in a file. It is not safe for concurrent use.
type File struct {
	file  *os.File
	in    io.Reader
	frame [frameBytes]byte
	read  int
	most  int // frames
}

var xzMagic = []byte("\xfd7zXZ\x00")

// Open opens a capture, plain or compressed with xz, which its first bytes tell.
func Open(path string) (*File, error) {
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

// unpacked takes the compression off, if there is one. What it reads is bounded by who reads it;
// the dictionary is what the file says, at most 4 GiB of address space of which no more is touched
// than is read.
func unpacked(file io.Reader) (io.Reader, error) {
	in := bufio.NewReaderSize(file, 1<<16)
	if head, _ := in.Peek(len(xzMagic)); !bytes.Equal(head, xzMagic) {
		return in, nil
	}
	return xz.NewReader(in)
}

// Next implements Source. Every field has been checked; after an error the file is of no use.
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
