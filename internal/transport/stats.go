package transport

import (
	"sync/atomic"
	"time"
)

// Drop is a reason for discarding data.
type Drop uint8

// The reasons, by queue or decoder.
const (
	DropInboxSession     Drop = iota // inbox: the session is over its own bound
	DropInboxHeld                    // inbox: the session has too many unprocessed bytes
	DropInboxTotal                   // inbox: all sessions together are over the bound
	DropInboxGone                    // inbox: arrived after the session's end
	DropUnreliable                   // mailbox: unreliable messages, the oldest first
	DropUnreliableRate               // mailbox: unreliable messages beyond the byte rate
	DropReliable                     // mailbox: reliable data of a peer that does not read
	DropOversize                     // mailbox: a message larger than its transport allows
	DropClosed                       // mailbox: sent after the close
	DropDuplicate                    // datagram: its number was seen before
	DropStale                        // datagram: its number is older than the window
	DropDatagram                     // datagram: its envelope is malformed
	DropDatagramTooLarge             // datagram: it is larger than allowed
	DropDatagramUnsent               // datagram: the link did not accept it
	DropDatagramBehind               // datagram: it expired while the link was behind
	DropDatagramRate                 // datagram: too many from this session
	DropDatagramBytes                // datagram: too many bytes from this session
	DropRole                         // datagram: a field that this side never receives
	DropTime                         // datagram: a time reply that runs backwards
	DropMessage                      // message: its envelope is malformed
	DropStage                        // message: its stage does not exist
	DropDecode                       // message: Decode returned an error
	DropDecoded                      // message: its decoded size is above MaxDecoded
	// stream: a frame that is empty, or of a kind that this version does not know
	DropFrame
	DropStream       // stream: a protocol violation; the connection is closed
	DropFrameRate    // stream: far too many frames; the connection is closed
	DropStreamBytes  // stream: far too many bytes; the connection is closed
	DropHello        // handshake: other bytes than a hello
	DropHelloTimeout // handshake: no hello in time
	DropHandshakes   // handshake: too many at once
	// handshake: too many at once from one household or machine
	DropHandshakeSite
	DropHandshakeRate // handshake: too many in a short time, from a site or in total
	DropUnproven      // handshake: an unproven address, above the limit for these
	DropDismissed     // handshake: evicted to free a place
	DropFull          // handshake: refused before it began, the server is full
	DropOverload      // handshake: refused before it began, the server is overloaded
	DropOrigin        // handshake: from a page with a forbidden origin
	DropRequest       // handshake: an HTTP request that opens no session
	numDrops
)

var dropNames = [numDrops][2]string{
	DropInboxSession:     {"inbox", "session_full"},
	DropInboxHeld:        {"inbox", "waiting"},
	DropInboxTotal:       {"inbox", "full"},
	DropInboxGone:        {"inbox", "session_gone"},
	DropUnreliable:       {"mailbox", "unreliable_full"},
	DropUnreliableRate:   {"mailbox", "unreliable_rate"},
	DropReliable:         {"mailbox", "reliable_full"},
	DropOversize:         {"mailbox", "oversize"},
	DropClosed:           {"mailbox", "closed"},
	DropDuplicate:        {"datagram", "duplicate"},
	DropStale:            {"datagram", "stale"},
	DropDatagram:         {"datagram", "malformed"},
	DropDatagramTooLarge: {"datagram", "oversize"},
	DropDatagramUnsent:   {"datagram", "unsent"},
	DropDatagramBehind:   {"datagram", "behind"},
	DropDatagramRate:     {"datagram", "too_many"},
	DropDatagramBytes:    {"datagram", "too_many_bytes"},
	DropRole:             {"datagram", "wrong_direction"},
	DropTime:             {"datagram", "bad_time"},
	DropMessage:          {"message", "malformed"},
	DropStage:            {"message", "unknown_stage"},
	DropDecode:           {"message", "undecodable"},
	DropDecoded:          {"message", "too_large_decoded"},
	DropFrame:            {"stream", "unknown_frame"},
	DropStream:           {"stream", "malformed"},
	DropFrameRate:        {"stream", "too_many_frames"},
	DropStreamBytes:      {"stream", "too_many_bytes"},
	DropHello:            {"handshake", "malformed"},
	DropHelloTimeout:     {"handshake", "timeout"},
	DropHandshakes:       {"handshake", "too_many"},
	DropHandshakeSite:    {"handshake", "too_many_of_site"},
	DropHandshakeRate:    {"handshake", "rate"},
	DropUnproven:         {"handshake", "unproven"},
	DropDismissed:        {"handshake", "dismissed"},
	DropFull:             {"handshake", "full"},
	DropOverload:         {"handshake", "overload"},
	DropOrigin:           {"handshake", "origin"},
	DropRequest:          {"handshake", "request"},
}

// Stats are counters of one owner's sessions. Any goroutine may read them.
type Stats struct {
	DatagramsIn, DatagramsOut     atomic.Uint64
	DatagramBytesIn               atomic.Uint64
	DatagramBytesOut              atomic.Uint64
	FramesIn, FramesOut           atomic.Uint64
	StreamBytesIn, StreamBytesOut atomic.Uint64
	// Chokes and ChokeNanos count the sends that waited for a peer's congestion window.
	Chokes, ChokeNanos atomic.Uint64
	// Handshakes counts connections that have sent a hello, Joined the admitted connections, and
	// Refused the refused connections.
	Handshakes, Joined [NumKinds]atomic.Uint64
	Refused            atomic.Uint64
	// Retries counts connections that were asked to prove their address.
	Retries atomic.Uint64
	// Unadmitted is the number of unadmitted connections.
	Unadmitted atomic.Int64
	// FlushLag observes the time from a flush until the link has accepted its last datagram. Set it
	// before the first session starts.
	FlushLag func(time.Duration)

	drops       [numDrops]atomic.Uint64
	disconnects [numCodes]atomic.Uint64
}

// Drop counts n discards.
func (s *Stats) Drop(d Drop, n uint64) { s.drops[d].Add(n) }

// Dropped returns the number of discards for a reason.
func (s *Stats) Dropped(d Drop) uint64 { return s.drops[d].Load() }

// Drops calls fn for every reason, in a fixed order, including zero counts.
func (s *Stats) Drops(fn func(queue, reason string, n uint64)) {
	for d := range s.drops {
		fn(dropNames[d][0], dropNames[d][1], s.drops[d].Load())
	}
}

// Disconnect counts the end of a connection.
func (s *Stats) Disconnect(c Code) { s.disconnects[c.counter()].Add(1) }

// Disconnects calls fn for every code, in a fixed order, including zero counts. The game's codes
// share the name "game".
func (s *Stats) Disconnects(fn func(code string, n uint64)) {
	for c := range s.disconnects {
		fn(codeTexts[c], s.disconnects[c].Load())
	}
}
