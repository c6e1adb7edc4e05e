package transport

import (
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// maxLengthPrefix is the largest number of bytes of a frame's length.
const maxLengthPrefix = 3

// maxHandshakeText bounds the short strings of a Hello: room, schema and build.
const maxHandshakeText = 256

// maxTicketText bounds the ticket of a Hello, which contains the name of a room.
const maxTicketText = 512

// ErrFrameTooLarge is the error for a frame, or a frame's length, above its bound.
var ErrFrameTooLarge = errors.New("transport: frame too large")

// CutFrame cuts the first frame, of at most limit bytes, from b. While it is incomplete,
// frame is nil and rest is b.
func CutFrame(b []byte, limit int) (frame, rest []byte, err error) {
	size, n := frameLength(b)
	switch {
	case n < 0 || size > limit:
		return nil, b, ErrFrameTooLarge
	case n == 0 || len(b)-n < size:
		return nil, b, nil
	}
	return b[n : n+size : n+size], b[n+size:], nil
}

// frameLength reads a length prefix of n bytes; n is 0 if the prefix is incomplete, and negative if
// it is too long.
func frameLength(b []byte) (size, n int) {
	for i := range min(len(b), maxLengthPrefix) {
		size |= int(b[i]&0x7f) << (7 * i)
		if b[i] < 0x80 {
			return size, i + 1
		}
	}
	if len(b) >= maxLengthPrefix {
		return 0, -1
	}
	return 0, 0
}

// ReadFrame reads exactly one frame of at most limit bytes from r, and no further byte.
func ReadFrame(r io.Reader, limit int) ([]byte, error) {
	var head [maxLengthPrefix]byte
	for i := range head {
		if _, err := io.ReadFull(r, head[i:i+1]); err != nil {
			return nil, err
		}
		size, n := frameLength(head[:i+1])
		if n < 0 || size > limit {
			return nil, ErrFrameTooLarge
		}
		if n > 0 {
			frame := make([]byte, size)
			if _, err := io.ReadFull(r, frame); err != nil {
				return nil, err
			}
			return frame, nil
		}
	}
	return nil, ErrFrameTooLarge
}

// AppendFrame appends a frame with its length.
func AppendFrame(dst []byte, f *netloopv1.Frame) ([]byte, error) {
	size := proto.Size(f)
	if size > MaxHandshake {
		return dst, fmt.Errorf("%w: %d bytes of at most %d", ErrFrameTooLarge, size, MaxHandshake)
	}
	dst = protowire.AppendVarint(dst, uint64(size))
	return proto.MarshalOptions{Deterministic: true}.MarshalAppend(dst, f)
}

// AppendHello appends the client's first frame.
func AppendHello(dst []byte, h *netloopv1.Hello) ([]byte, error) {
	return AppendFrame(dst, &netloopv1.Frame{Kind: &netloopv1.Frame_Hello{Hello: h}})
}

// AppendWelcome appends the server's answer to a hello that it accepts.
func AppendWelcome(dst []byte, w *netloopv1.Welcome) ([]byte, error) {
	return AppendFrame(dst, &netloopv1.Frame{Kind: &netloopv1.Frame_Welcome{Welcome: w}})
}

// AppendRefused appends the server's answer to a hello that it does not accept.
func AppendRefused(dst []byte, r *Refusal) []byte {
	f := &netloopv1.Refused{Code: netloopv1.Code(r.Code), Text: clip(r.Text)}
	if r.Moved != nil && r.Moved.fits() {
		f.Moved = r.Moved.message()
	}
	// AppendFrame cannot fail here: a clipped text and a checked destination fit.
	dst, _ = AppendFrame(dst, &netloopv1.Frame{Kind: &netloopv1.Frame_Refused{Refused: f}})
	return dst
}

// decodeFrame decodes a frame of the handshake, which holds exactly one kind. The bounds on its
// size and depth also bound the cost of decoding.
func decodeFrame(frame []byte) (*netloopv1.Frame, error) {
	if len(frame) > MaxHandshake {
		return nil, ErrFrameTooLarge
	}
	if _, _, err := parseFrame(frame); err != nil {
		return nil, err
	}
	var f netloopv1.Frame
	err := proto.UnmarshalOptions{DiscardUnknown: true, RecursionLimit: 32}.Unmarshal(frame, &f)
	return &f, err
}

// DecodeHello decodes a client's first frame (without its length) and checks the fields that do not
// depend on the game. Every error is a *Refusal, which can be sent to the client.
func DecodeHello(frame []byte) (*netloopv1.Hello, error) {
	f, err := decodeFrame(frame)
	if err != nil {
		return nil, &Refusal{Code: CodeProtocol, Text: "first frame is malformed"}
	}
	h := f.GetHello()
	switch {
	case h == nil:
		return nil, &Refusal{Code: CodeProtocol, Text: "first frame is not a hello"}
	case h.Protocol != ProtocolVersion:
		return nil, &Refusal{Code: CodeBadVersion, Text: fmt.Sprintf("server has protocol version %d, client %d", ProtocolVersion, h.Protocol)}
	case len(h.Ticket) > maxTicketText:
		return nil, &Refusal{Code: CodeProtocol, Text: fmt.Sprintf("ticket is larger than %d bytes", maxTicketText)}
	case len(h.Room) > maxHandshakeText || len(h.Schema) > maxHandshakeText || len(h.Build) > maxHandshakeText:
		return nil, &Refusal{Code: CodeProtocol, Text: fmt.Sprintf("room, schema or build is larger than %d bytes", maxHandshakeText)}
	}
	return h, nil
}

// decodeAnswer returns the server's welcome. A refusal is the error *Refusal, any other answer a
// *Closed.
func decodeAnswer(f *netloopv1.Frame) (*netloopv1.Welcome, error) {
	switch k := f.Kind.(type) {
	case *netloopv1.Frame_Refused:
		r := &Refusal{Code: Code(k.Refused.GetCode()), Text: clip(k.Refused.GetText())}
		if r.Code == CodeMoved {
			r.Moved = movedTo(k.Refused.GetMoved())
		}
		return nil, r
	case *netloopv1.Frame_Welcome:
		w := k.Welcome
		if w.GetTickRate().GetNum() == 0 || w.GetTickRate().GetDen() == 0 || w.GetFixedRate().GetNum() == 0 || w.GetFixedRate().GetDen() == 0 {
			return nil, &Closed{Code: CodeProtocol, Text: "server's rate is zero"}
		}
		return w, nil
	}
	return nil, &Closed{Code: CodeProtocol, Text: "server's answer is neither a welcome nor a refusal"}
}

// Declined converts an error of the server into the refusal for the peer. said is false for an
// internal error: the server should log it.
func Declined(err error) (r *Refusal, said bool) {
	if errors.As(err, &r) {
		return r, true
	}
	return &Refusal{Code: CodeInternal, Text: "internal error"}, false
}
