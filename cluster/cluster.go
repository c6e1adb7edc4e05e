package cluster

import (
	"context"
	"errors"
	"time"
)

// Times of a cluster. All of them are intervals; no two machines compare their clocks.
const (
	// Beat is the interval of a server's heartbeats.
	Beat = time.Second
	// SuspectBeats is the number of missed heartbeats after which a server is suspect.
	SuspectBeats = 3
	// LeaseBeats is the number of missed heartbeats after which the leases of a server expire.
	LeaseBeats = 10
	// HoldBeats is the number of missed heartbeats after which a server itself no longer relies on
	// its leases: one less, so that it stops before another server may begin.
	HoldBeats = LeaseBeats - 1
	// ForgetBeats is the number of missed heartbeats after which a server is no longer listed.
	ForgetBeats = 60
	// BoardInterval is the minimum time between two messages about the rooms of a server. In large
	// clusters an implementation may take up to a second.
	BoardInterval = 50 * time.Millisecond
	// StoreTime is the longest time that Claim, Release and Find take, also without a deadline.
	StoreTime = 5 * time.Second
	// MaxCallTime is the longest time that a call may take.
	MaxCallTime = 30 * time.Second
)

// The limits of a cluster. Implementations refuse larger values of their own server, and drop
// those of others.
const (
	MaxServers   = 1024     // servers that a member lists
	MaxAddresses = 8        // addresses of a server
	MaxText      = 256      // bytes of an id, an address, a region, a zone, a schema, an error
	MaxName      = 300      // bytes of a name, or of a room on a board
	MaxNames     = 16384    // names that a server holds
	MaxKept      = 65536    // names of Claim with a keep, in a Memory
	MaxRooms     = 16384    // rooms on the board of a server
	MaxEntry     = 16 << 10 // bytes of an entry
	MaxBoard     = 16 << 20 // bytes of all names and entries of a board
	MaxBody      = 64 << 10 // bytes of a call, and of an answer
	MaxCalls     = 32768    // sent calls, and received calls, of a server
	MaxAnswers   = 16 << 20 // bytes of the answers that a server keeps for repeated calls
	MaxServing   = 256      // calls that a server runs at once
)

// The errors of a cluster. Each is the text for a player or an operator, too.
var (
	// ErrBusy is the error if the store, or the called server, did not answer in time. The effect
	// of the request is unknown: a Claim may have taken the name for this server, which gives it
	// back as soon as the store answers.
	ErrBusy = errors.New("the cluster is busy, try again later")
	// ErrTaken is the error if another server has the name, or has taken it over.
	ErrTaken = errors.New("the name is taken")
	// ErrGone is the error if no server has the name, or if the called server has left.
	ErrGone = errors.New("no server has the name")
	// ErrClosed is the error after Close.
	ErrClosed = errors.New("the server has left the cluster")
)

// Epoch numbers the claims of a cluster: each successful claim has a larger one than all claims
// before, of any name. It is the incarnation of the room of that name, so it is below 2⁶³, and
// stores refuse the saves of an older one.
type Epoch uint64

// Cluster is one server's membership of a cluster. Any goroutine may use it, also from within a
// call that it serves. No method waits longer than its documented time.
type Cluster interface {
	// Join makes the server a member; other methods may be called afterwards. ErrBusy means that
	// the cluster did not answer before the end of ctx: the server continues to join, and Health
	// tells when it has. ErrTaken means that another server has the id.
	Join(ctx context.Context, m Member) error

	// Servers returns the members in the order of their ids, this server included. It does not
	// wait.
	Servers() []Server

	// Claim takes a name that no server holds. The name is this server's until Release or Close,
	// or until its lease expires and another server claims the name. With keep > 0 it belongs to
	// no server: it remains taken for that time, at least and also after Close. Tokens that are
	// used once need that. The error is ErrTaken or, at the end of ctx and after StoreTime at the
	// latest, ErrBusy. A server that the store does not hear claims nothing.
	Claim(ctx context.Context, name string, keep time.Duration) (Epoch, error)

	// Hold reports whether this server still has the name by that claim. It does not wait, and a
	// room calls it before each admission. ErrBusy means that the lease is not confirmed: the room
	// plays on and admits nobody. ErrTaken means that a newer claim exists: the room ends or hands
	// over. While Hold returns nil no other server can hold the name.
	Hold(name string, e Epoch) error

	// Release gives the name back. A name that was lost in the meantime is no error. At the end of
	// ctx, and after StoreTime at the latest, the error is ErrBusy: the name is free later, when
	// the store answers, or when the lease expires.
	Release(ctx context.Context, name string, e Epoch) error

	// Find returns the holder of a name, or ErrGone. A name with a keep has no Server. The answer
	// may be old by the time of its arrival: the called server decides. At the end of ctx, and
	// after StoreTime at the latest, the error is ErrBusy.
	Find(ctx context.Context, name string) (Holder, error)

	// Announce sets the entry of a room on the board of this server, and nil removes it. Other
	// servers have it after BoardInterval, or up to a second in a large cluster, and the way. It
	// does not wait, and it reports false for an entry beyond the limits. The entry must not be
	// changed afterwards.
	Announce(room string, entry []byte) bool

	// Boards returns the boards of all servers in the order of their ids. It does not wait.
	// Callers must not change the result. A board remains while its server is suspect, and is
	// marked so.
	Boards() []Board

	// Call sends a call to another server and returns its answer. The call is repeated until the
	// answer arrives, and the server runs it once. After the call's Timeout the error is ErrBusy:
	// the server may have run the call before, and does not begin to run it later. ErrGone means
	// that no server has the id. An error of the handler has its text, and is ErrBusy, ErrTaken or
	// ErrGone if the handler's is.
	Call(ctx context.Context, c Call) ([]byte, error)

	// Serve sets the handler of calls, before Join. Calls run at once on goroutines of their own,
	// at most MaxServing; further ones are answered with ErrBusy, as is a call without a handler.
	Serve(h Handler)

	// Health returns the state of the connection, for logs and probes. It does not wait. A server
	// that is not connected continues to serve its own rooms.
	Health() Health

	// Close leaves the cluster: the names of the server are free, and other members remove it. It
	// returns when all goroutines have ended, and at the end of ctx at the latest. The handler of
	// calls should return when its context ends.
	Close(ctx context.Context) error
}

// Member is a server that joins.
type Member struct {
	Server Server // Load and Suspect are not used
	// Load returns the server's present load. It is called in each Beat, and must not wait.
	Load func() Load
	// Changed is called after a change of Servers, other than of a Load, or of Boards. Lost is
	// called when a newer claim of a name exists. They may run on any goroutine, must not wait,
	// and must not call the Cluster. Nil is no function.
	Changed func()
	Lost    func(name string, e Epoch)
}

// Server describes a member.
type Server struct {
	// ID identifies one run of a process: letters, digits, - and _, at most 64. A restarted server
	// has another one.
	ID           string
	Addresses    []Address
	Region, Zone string // places of the machine; empty is one place
	Schema       string // fingerprint of the game's schema
	Load         Load
	Suspect      bool // SuspectBeats heartbeats are missing
}

// Address is the address of a server for one carrier.
type Address struct {
	Carrier string   // quic, webtransport or websocket
	Addr    string   // host and port, or a URL
	Name    string   // of the server's certificate; empty is the host
	Hashes  [][]byte // SHA-256 of certificates that no authority has signed; at most 4
}

// Load is the part of a server that is in use.
type Load struct {
	Rooms, MaxRooms     int
	Clients, MaxClients int
	Overload            int  // level of the ladder
	Draining            bool // takes no new room
}

// Holder is the holder of a name.
type Holder struct {
	Server string // its ID
	Epoch  Epoch
}

// Board lists the rooms of a server.
type Board struct {
	Server  string // its ID
	Suspect bool
	Version uint64 // larger after each change
	Rooms   []Room // in the order of their names
}

// Room is an entry of a board.
type Room struct {
	Name  string
	Entry []byte // encoded by the server
}

// Call is a request to another server.
type Call struct {
	To     string // the ID of a server; a server may call itself
	Method string
	Body   []byte
	// Timeout is the time for the answer; zero means StoreTime, at most MaxCallTime.
	Timeout time.Duration
	// ID identifies the call: a server answers a repeated call in the same way without running it,
	// within the Timeout of any of the repetitions. It is unique in the cluster. Empty means a new
	// one.
	ID string
}

// Request is a call as its handler gets it.
type Request struct {
	From, Method string
	Body         []byte
}

// Handler answers calls. Its ctx ends with the call's Timeout.
type Handler func(ctx context.Context, r Request) ([]byte, error)

// Health is the state of a server's connection to its cluster.
type Health struct {
	OK   bool   // names can be claimed
	Text string // the reason if not, in words
}
