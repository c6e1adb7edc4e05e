package netloop

import (
	"cmp"
	"time"

	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/transport"
)

// RPCLimits bounds the cost of clients' messages for a room. The defaults are generous: only a
// client that attacks reaches a limit.
//
// The limits of a client that exceeds its rate have three levels. Above its burst its messages
// still run, and a warning is logged; above twice its burst they are dropped; after KickAfter drops
// it is kicked with [CodeFlood]. Each level is logged once per episode; an episode ends after ten
// seconds within the limits. All times are game time, so that a replay of a recorded room gets the
// same results.
//
// A client's consumption is kept after the end of its connection: for the player that [Join]
// Subject names, and otherwise for the client's address, an IPv4 address or a /56 of IPv6. Clients
// at one address do not share a limit, but a new client starts with the consumption of the clients
// that have left the address. This does not affect a client that stays within the limits. After a
// kick with [CodeFlood] that player is refused for ten seconds; without a Subject, a client that
// joins from the address waits a second or, one after another, up to four.
//
// Before a message is decoded, the limits of its connection apply: 600 datagrams a second, or two
// for each tick if that is more, and 4 000 stream frames and 2 MiB a second, or more if PerSecond
// or Burst are larger. The size of a message is its decoded size, at most 256 KiB, but at least six
// times its encoded size.
type RPCLimits struct {
	// PerSecond is the number of messages, of all kinds together, that a client may send in a
	// second. Default 1 000, from one an hour to a million; -1: no limit.
	PerSecond float64
	// Burst is the number of messages that a client may send at once, at most 256 KiB of them in
	// one tick, decoded. Default 2 000, from 1 to 65 536.
	Burst int
	// KickAfter is the number of messages dropped by limits after which a client is kicked. The
	// count decreases at the rate of PerSecond. Default 10 000, from 1 to 1 048 576; -1: never.
	KickAfter int
	// Budget is the number of messages that one stage of one tick runs. If more messages wait, each
	// client gets an equal share, and its other messages wait in order. Default 4 096, from 1 to 1
	// 048 576; -1: no limit.
	Budget int
	// Share is the part of a tick's period that all messages may take, over all stages, and
	// ClientShare the part that the messages of one client may take. The cost of a message is
	// estimated from the measured times of earlier messages of its method. If the waiting messages
	// would exceed Share, each client gets an equal time, and its other messages wait in order. One
	// message per client and stage runs at any cost while Share is not used up, and one message per
	// stage runs in any case. Defaults 0.5 and 0.05, from 0.001 to 1; -1: no limit.
	Share, ClientShare float64
	// Answers is the number of pending answers, by HandleLater, that one client may have. Default
	// 256, from 1 to 65 536. A further call is refused with CodeBusy.
	Answers int
	// Dry counts messages that exceed the limits of clients and methods, but drops no message and
	// kicks no client. Budget and Answers still apply.
	Dry bool
}

// Defaults and bounds of RPCLimits. 1 000 messages a second are sixteen per tick at 60 Hz. A burst
// of 2 000 is the backlog after a stall of 20 s of a client that sends 100 messages a second.
const (
	defaultPerSecond = 1000
	defaultBurst     = 2000
	defaultKickAfter = 10_000
	defaultBudget    = 4096
	defaultAnswers   = 256

	// The other half of a tick is for systems and snapshots. 5 % of a tick, 0.8 ms at 60 Hz, is
	// within the usual variation, so a single client cannot make ticks noticeably longer.
	defaultShare       = 0.5
	defaultClientShare = 0.05
	minShare           = 0.001
	maxAnswers         = 1 << 16
)

// validate returns the limits with their defaults set, or an error that names the key.
func (l RPCLimits) validate() (RPCLimits, error) {
	fill := func(v *int, standard int) {
		if *v == 0 {
			*v = standard
		}
	}
	if l.PerSecond == 0 {
		l.PerSecond = defaultPerSecond
	}
	fill(&l.Burst, defaultBurst)
	fill(&l.KickAfter, defaultKickAfter)
	fill(&l.Budget, defaultBudget)
	fill(&l.Answers, defaultAnswers)
	l.Share, l.ClientShare = cmp.Or(l.Share, defaultShare), cmp.Or(l.ClientShare, defaultClientShare)
	if err := (rpcqueue.Bucket{PerSecond: 1, Burst: l.Burst}).Check(); err != nil {
		return l, ConfigError("RPC.Burst", l.Burst, "use 1 to %d", rpcqueue.MaxBurst)
	}
	if err := (rpcqueue.Bucket{PerSecond: l.PerSecond, Burst: 1}).Check(); err != nil && l.PerSecond != -1 {
		return l, ConfigError("RPC.PerSecond", l.PerSecond, "use one an hour to %.0f, or -1 for any number", rpcqueue.MaxPerSecond)
	}
	if l.KickAfter < -1 || l.KickAfter > rpcqueue.MaxKick {
		return l, ConfigError("RPC.KickAfter", l.KickAfter, "use 1 to %d, or -1 for never", rpcqueue.MaxKick)
	}
	if l.Budget < -1 || l.Budget > rpcqueue.MaxBudget {
		return l, ConfigError("RPC.Budget", l.Budget, "use 1 to %d, or -1 for any number", rpcqueue.MaxBudget)
	}
	share := func(v float64) bool { return v >= minShare && v <= 1 || v == -1 } // false for NaN
	switch remedy := "use %v to 1, or -1 for any time"; {
	case !share(l.Share):
		return l, ConfigError("RPC.Share", l.Share, remedy, minShare)
	case !share(l.ClientShare):
		return l, ConfigError("RPC.ClientShare", l.ClientShare, remedy, minShare)
	}
	if l.Answers < 1 || l.Answers > maxAnswers {
		return l, ConfigError("RPC.Answers", l.Answers, "use 1 to %d", maxAnswers)
	}
	return l, nil
}

// queue returns the limits for the queue of a room with a tick period.
func (l RPCLimits) queue(period time.Duration) rpcqueue.Limits {
	part := func(share float64) time.Duration { return time.Duration(max(share, 0) * float64(period)) }
	q := rpcqueue.Limits{Budget: max(l.Budget, 0), Dry: l.Dry, Time: part(l.Share), SenderTime: part(l.ClientShare)}
	if l.PerSecond != -1 {
		q.Sender = rpcqueue.Bucket{PerSecond: l.PerSecond, Burst: l.Burst}
		q.Kick = max(l.KickAfter, 0)
	}
	return q
}

// minArrivals is the number of a client's arrivals other than messages, such as acknowledgements,
// that may wait for a poll; most kinds arrive once between two polls.
const minArrivals = 256

// arrivals returns the number of arrivals of one client that may wait for a poll. A client that
// exceeds it is disconnected before the limits apply to its messages, so it must be large enough
// for a burst.
func (l RPCLimits) arrivals() int { return minArrivals + l.Burst }

// link returns the limits of a connection, which apply before its messages are decoded. They
// suffice for the messages that l permits, and are never below the defaults, because even clients
// of a game with few messages send acknowledgements, and inputs once a tick.
func (l RPCLimits) link(period time.Duration) transport.Limits {
	if l.PerSecond == -1 {
		return transport.Limits{}
	}
	times := max(1, l.PerSecond/defaultPerSecond, float64(l.Burst)/defaultBurst)
	scale := func(r transport.Rate) transport.Rate {
		return transport.Rate{PerSecond: int(times * float64(r.PerSecond)), Burst: int(times * float64(r.Burst))}
	}
	d := transport.DefaultLimits
	if often := int(2 * time.Second / period); d.Datagrams.PerSecond < often {
		d.Datagrams = transport.Rate{PerSecond: often, Burst: often}
	}
	return transport.Limits{Datagrams: scale(d.Datagrams), Frames: scale(d.Frames), Bytes: scale(d.Bytes)}
}
