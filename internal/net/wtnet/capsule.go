package wtnet

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/quic-go/quicvarint"

	"github.com/netloop/netloop/internal/transport"
)

// maxCapsules bounds the bytes of a session's CONNECT stream. A browser sends one capsule of at
// most 1 KiB when it closes the session, and little else.
const maxCapsules = 16 << 10

// errTooMuch is the error of a CONNECT stream with more bytes than maxCapsules.
var errTooMuch = errors.New("wtnet: too much data on the CONNECT stream")

// frames reads the contents of the DATA frames of a CONNECT stream. It skips other frames.
type frames struct {
	r    io.Reader
	left int    // the number of bytes that may still be read
	data uint64 // unread bytes of the current DATA frame
}

// Read implements io.Reader. The stream may end between two frames.
func (f *frames) Read(b []byte) (int, error) {
	for f.data == 0 {
		before := f.left
		if err := f.next(); err != nil {
			return 0, f.cut(err, before)
		}
	}
	n, err := counted{f}.Read(b[:min(uint64(len(b)), f.data)])
	f.data -= uint64(n)
	return n, f.cut(err, f.left)
}

// next reads the head of a frame, and skips frames other than DATA.
func (f *frames) next() error {
	in := quicvarint.NewReader(counted{f})
	kind, err := quicvarint.Read(in)
	if err != nil {
		return err
	}
	size, err := quicvarint.Read(in)
	if err != nil {
		return err
	}
	if kind == frameData {
		f.data = size
		return nil
	}
	_, err = io.CopyN(io.Discard, counted{f}, int64(size)) // A size has at most 62 bits.
	return err
}

// cut converts the end of the stream inside a frame to io.ErrUnexpectedEOF. before is the value of
// left before the read.
func (f *frames) cut(err error, before int) error {
	if errors.Is(err, io.EOF) && (f.data > 0 || f.left != before) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// counted reads from the stream itself and counts the bytes in left: it reads at most left bytes.
type counted struct{ *frames }

func (c counted) Read(b []byte) (int, error) {
	if len(b) > 0 && c.left == 0 {
		return 0, errTooMuch
	}
	n, err := c.r.Read(b[:min(len(b), c.left)])
	c.left -= n
	return n, err
}

// readClose reads capsules until the peer closes the session, either by a capsule or by the end of
// the stream, which has no code. Any other error means that the peer has sent no reason.
func readClose(r io.Reader) (transport.Closed, error) {
	for parser := http3.NewCapsuleParser(r); ; {
		kind, capsule, err := parser.Next()
		switch {
		case errors.Is(err, io.EOF):
			return transport.Closed{Remote: true}, nil
		case err != nil:
			return transport.Closed{}, err
		case kind == capsuleClose:
			return parseClose(capsule)
		}
		if err := capsule.Discard(); err != nil {
			return transport.Closed{}, err
		}
	}
}

// parseClose reads the capsule that closes the session.
func parseClose(r io.Reader) (transport.Closed, error) {
	var code [4]byte
	if _, err := io.ReadFull(r, code[:]); err != nil {
		return transport.Closed{}, err
	}
	text, err := io.ReadAll(io.LimitReader(r, transport.MaxText))
	if err != nil {
		return transport.Closed{}, err
	}
	return transport.Closed{Code: transport.Code(binary.BigEndian.Uint32(code[:])), Text: string(text), Remote: true}, nil
}

// appendClose appends the capsule that closes the session.
func appendClose(dst []byte, code transport.Code, text string) []byte {
	dst = quicvarint.Append(dst, capsuleClose)
	dst = quicvarint.Append(dst, uint64(4+len(text)))
	dst = binary.BigEndian.AppendUint32(dst, uint32(code))
	return append(dst, text...)
}
