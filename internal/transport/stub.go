package transport

import (
	"io"
	"time"

	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// SessionConfig is what a session needs to know.
type SessionConfig struct {
	ID     uint64
	Client bool // the role: the client's end of the connection
	Inbox  *Inbox
	Clock  func() time.Duration
	Stats  *Stats // nil: not counted
	Decode func(m *Message) (any, error)
}

// Session is one connection after its handshake, either end.
type Session struct{}

// Slot holds one snapshot.
type Slot struct{ Packets [][]byte }

// LinkFacts is what an owner may know of the link.
type LinkFacts struct {
	SRTT        time.Duration
	SlotFree    bool
	LastArrival time.Duration
}

// Inbox collects the arrivals of many sessions.
type Inbox struct{}

// The body follows.
func NewInbox(maxPerSession int, stats *Stats) *Inbox { panic("transport: not yet") }

// The body follows.
func (b *Inbox) Push(a Arrival) bool { panic("transport: not yet") }

// The body follows.
func (b *Inbox) Swap(spare []Arrival) []Arrival { panic("transport: not yet") }

// The body follows.
func (b *Inbox) Len() int { panic("transport: not yet") }

// The body follows.
func NewSession(cfg SessionConfig) *Session { panic("transport: not yet") }

// The body follows.
func (s *Session) ID() uint64 { panic("transport: not yet") }

// The body follows.
func (s *Session) Inbox() *Inbox { panic("transport: not yet") }

// The body follows.
func (s *Session) ReceiveDatagram(at time.Duration, b []byte) { panic("transport: not yet") }

// The body follows.
func (s *Session) ReceiveStream(at time.Duration, b []byte) error { panic("transport: not yet") }

// The body follows.
func (s *Session) AppendDatagram(dst []byte, at time.Duration) ([]byte, bool) {
	panic("transport: not yet")
}

// The body follows.
func (s *Session) DatagramSent(started, ended time.Duration, ok bool) { panic("transport: not yet") }

// The body follows.
func (s *Session) AppendStream(dst []byte, max int) []byte { panic("transport: not yet") }

// The body follows.
func (s *Session) Wake() (datagrams, stream <-chan struct{}) { panic("transport: not yet") }

// The body follows.
func (s *Session) SetRTT(srtt time.Duration) { panic("transport: not yet") }

// The body follows.
func (s *Session) Shutdown(code Code, text string) { panic("transport: not yet") }

// The body follows.
func (s *Session) Closing() <-chan struct{} { panic("transport: not yet") }

// The body follows.
func (s *Session) CloseRequested() (Closed, bool) { panic("transport: not yet") }

// The body follows.
func (s *Session) End(c Closed) { panic("transport: not yet") }

// The body follows.
func (s *Session) Send(m Message) bool { panic("transport: not yet") }

// The body follows.
func (s *Session) Slot() *Slot { panic("transport: not yet") }

// The body follows.
func (s *Session) AckState(packet uint64) { panic("transport: not yet") }

// The body follows.
func (s *Session) PublishEpoch(e Epoch) { panic("transport: not yet") }

// The body follows.
func (s *Session) RequestDigest(snapshots uint32) { panic("transport: not yet") }

// The body follows.
func (s *Session) RequestFullState() { panic("transport: not yet") }

// The body follows.
func (s *Session) RequestTime() { panic("transport: not yet") }

// The body follows.
func (s *Session) Flush(at time.Duration) { panic("transport: not yet") }

// The body follows.
func (s *Session) Close(code Code, text string) { panic("transport: not yet") }

// The body follows.
func (s *Session) Link() LinkFacts { panic("transport: not yet") }

// The body follows.
func AppendFrame(dst []byte, f *netloopv1.Frame) ([]byte, error) { panic("transport: not yet") }

// The body follows.
func AppendHello(dst []byte, h *netloopv1.Hello) ([]byte, error) { panic("transport: not yet") }

// The body follows.
func AppendWelcome(dst []byte, w *netloopv1.Welcome) ([]byte, error) { panic("transport: not yet") }

// The body follows.
func AppendRefused(dst []byte, r *Refusal) []byte { panic("transport: not yet") }

// The body follows.
func CutFrame(b []byte, max int) (frame, rest []byte, err error) { panic("transport: not yet") }

// The body follows.
func DecodeHello(frame []byte) (*netloopv1.Hello, error) { panic("transport: not yet") }

// The body follows.
func DecodeAnswer(frame []byte) (*netloopv1.Welcome, error) { panic("transport: not yet") }

// The body follows.
func ReadFrame(r io.Reader, max int) ([]byte, error) { panic("transport: not yet") }
