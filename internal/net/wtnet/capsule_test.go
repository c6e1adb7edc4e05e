package wtnet

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/quic-go/quic-go"

	"github.com/netloop/netloop/internal/transport"
)

// frame returns a frame of HTTP/3, with a size below 64.
func frame(kind byte, b ...byte) []byte { return append([]byte{kind, byte(len(b))}, b...) }

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// The close of a session is read, however its capsules are cut into frames.
func TestTheCloseOfASession(t *testing.T) {
	bye := appendClose(nil, 1234, "bye")
	unknown := []byte{0x21, 3, 1, 2, 3}
	long := appendClose(nil, 7, strings.Repeat("x", transport.MaxText+1))
	for name, c := range map[string]struct {
		in   []byte
		want transport.Closed
		err  error
	}{
		"a close":                             {frame(0, bye...), transport.Closed{Code: 1234, Text: "bye"}, nil},
		"in two frames":                       {join(frame(0, bye[:3]...), frame(0, bye[3:]...)), transport.Closed{Code: 1234, Text: "bye"}, nil},
		"behind what is unknown":              {join(frame(0x21, 1, 2), frame(0), frame(0, unknown...), frame(0, bye...)), transport.Closed{Code: 1234, Text: "bye"}, nil},
		"behind a frame that looks like data": {join(frame(0x21, 0, 5), frame(0, bye...)), transport.Closed{Code: 1234, Text: "bye"}, nil},
		"the end":                             {nil, transport.Closed{}, nil},
		"the end behind a frame":              {frame(0, unknown...), transport.Closed{}, nil},
		"a text that is too long":             {join([]byte{0, 0x42, 0x08}, long), transport.Closed{Code: 7, Text: strings.Repeat("x", transport.MaxText)}, nil},
		"a short close":                       {frame(0, 0x68, 0x43, 2, 0, 0), transport.Closed{}, io.ErrUnexpectedEOF},
		"half a frame's head":                 {[]byte{0}, transport.Closed{}, io.ErrUnexpectedEOF},
		"half a frame":                        {[]byte{0x21, 9, 1}, transport.Closed{}, io.ErrUnexpectedEOF},
		"half a capsule":                      {frame(0, 0x21, 9, 1), transport.Closed{}, io.ErrUnexpectedEOF},
		"half a data frame":                   {[]byte{0, 9, 0x21}, transport.Closed{}, io.ErrUnexpectedEOF},
		"a data frame without its last byte":  {[]byte{0, 4, 0x21, 1, 1}, transport.Closed{}, io.ErrUnexpectedEOF},
		"half a text":                         {frame(0, bye[:len(bye)-1]...), transport.Closed{}, io.ErrUnexpectedEOF},
		"too much":                            {join([]byte{0x21, 0x80, 0, 0xff, 0xff}, make([]byte, maxCapsules)), transport.Closed{}, errTooMuch},
		"too many frames":                     {make([]byte, 2*maxCapsules), transport.Closed{}, errTooMuch},
	} {
		c.want.Remote = c.err == nil
		got, err := readClose(&frames{r: bytes.NewReader(c.in), left: maxCapsules})
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s reads %+v, %v; want %+v, %v", name, got, err, c.want, c.err)
		}
	}
}

// Of any CONNECT stream only bounded data is read and kept.
func FuzzConnectStream(f *testing.F) {
	f.Add(frame(0, appendClose(nil, 1234, "bye")...))
	f.Add(join(frame(0x21, 1, 2), frame(0, 0x21, 3, 1, 2, 3)))
	f.Add([]byte{0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x68, 0x43, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, in []byte) {
		r := bytes.NewReader(in)
		c, err := readClose(&frames{r: r, left: maxCapsules})
		if read := len(in) - r.Len(); read > maxCapsules || len(c.Text) > transport.MaxText || err != nil && c != (transport.Closed{}) {
			t.Errorf("%d bytes were read: %+v, %v", read, c, err)
		}
	})
}

// A code survives the conversion to HTTP/3 and back, and HTTP/3's own errors are not codes.
func TestCodesAsErrorsOfHTTP3(t *testing.T) {
	for _, c := range []transport.Code{0, 1, 0x1d, 0x1e, 0x1f, 0x3c, transport.CodeGame, math.MaxUint32} {
		if got, ok := codeOf(errorCode(c)); got != c || !ok {
			t.Errorf("%d is %#x, and that %d, %v", uint32(c), uint64(errorCode(c)), uint32(got), ok)
		}
	}
	// The numbers that the draft gives as the first and the last.
	if first, last := errorCode(0), errorCode(math.MaxUint32); first != 0x52e4a40fa8db || last != 0x52e5ac983162 {
		t.Errorf("from %#x to %#x", uint64(first), uint64(last))
	}
	for _, e := range []quic.ApplicationErrorCode{0, 0x100, firstError - 1, 0x52e5ac983163, firstError + 0x1e} {
		if c, ok := codeOf(e); ok {
			t.Errorf("%#x is %v", uint64(e), c)
		}
	}
	var app *quic.ApplicationError
	err := why(&quic.ApplicationError{Remote: true, ErrorCode: errorCode(transport.CodeBusy), ErrorMessage: "later"})
	if !errors.As(err, &app) || *app != (quic.ApplicationError{Remote: true, ErrorCode: quic.ApplicationErrorCode(transport.CodeBusy), ErrorMessage: "later"}) {
		t.Error(err)
	}
	if err := why(&quic.ApplicationError{Remote: true, ErrorCode: 0x100}); errors.As(err, &app) || !strings.Contains(err.Error(), "0x100") {
		t.Error(err)
	}
	if err := why(context.Canceled); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
