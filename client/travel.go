package client

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/net/quicnet"
	"github.com/netloop/netloop/internal/net/wsnet"
	"github.com/netloop/netloop/internal/transport"
)

// A client moves to a room of another server over a second connection:
//
//	first server     client                                        second server
//	moved, with to ─▶ travel: dial ───────────── connection ──────▶
//	                  plays on in its room
//	keeps the seat ◀─ depart: close(CodeMoved), hello ────────────▶ admission
//	                  arrival: waits ◀───────── welcome, accepted ─
//	                  enter: a new client of the second server
//	resumes        ◀─ turnBack: refused, lost, or too late
//
// Until the second server has accepted the client, the client sends it no data and keeps the state
// of its old seat. So it can resume that seat by its secret as after any lost connection.

// trip is a move to a room of another server, from the frame moved until that server has accepted
// the client.
type trip struct {
	move    transport.MovedTo
	rest    []transport.Address // addresses to dial if the present one does not answer
	since   time.Duration       // time of the frame moved
	attempt *attempt
	left    bool            // the client has closed its session, and sends its hello
	before  State           // state in the old room, to which the client returns
	closed  *netloop.Closed // why the first server has closed; nil: there is a way back
}

const (
	// travelTime limits the dial of the other server, and then the time until it has accepted the
	// client. The frame moved announces a server that answers; a client that waits longer plays on
	// in its room.
	travelTime = 5 * time.Second
	// maxRedirects limits the servers that pass a client on to another server in a row.
	maxRedirects = 3
)

// never is the time of the next attempt of a client that only waits for its trip.
const never = time.Duration(1<<63 - 1)

// travel begins to dial the server of a room, while the client plays on. It replaces an earlier
// trip, unless the client has left its room for that one.
func (n *connection) travel(m transport.MovedTo) {
	if !n.travels || n.trip != nil && n.trip.left {
		return
	}
	n.dropTrip()
	t := &trip{move: m, rest: reachable(m.To, n.cfg.Transport), since: n.clock.Now()}
	if !n.dialNext(t) {
		n.log.Warn("the other server has no address that the client can dial, the client stays in its room")
		return
	}
	n.trip = t
}

// dialNext dials the next address of a trip. It reports false without one.
func (n *connection) dialNext(t *trip) bool {
	if len(t.rest) == 0 {
		return false
	}
	a := n.newRedirected(&t.move, t.rest[0])
	t.rest = t.rest[1:]
	a.holds, a.limit, t.attempt = true, 2*travelTime, a
	n.start(a)
	return true
}

// newRedirected returns an attempt with the ticket of another server, which knows the client's
// player by the ticket.
func (n *connection) newRedirected(m *transport.MovedTo, to transport.Address) *attempt {
	a := n.newAttempt()
	a.to, a.tokens = &to, nil
	h := a.hello
	h.Room, h.Ticket, h.Token = "", m.Ticket, ""
	if h.Resume != nil {
		h.Resume.Token, h.Resume.Received, h.Resume.Kept = nil, 0, false
	}
	return a
}

// redirected returns the next attempt after a server has answered that the room is on another
// server, or nil if the error is another one, or for too many such answers in a row.
func (n *connection) redirected(a *attempt, err error) *attempt {
	var refused *transport.Refusal
	if !errors.As(err, &refused) || refused.Moved == nil || a.redirects >= maxRedirects {
		return nil
	}
	to := reachable(refused.Moved.To, n.cfg.Transport)
	if len(to) == 0 {
		return nil
	}
	next := n.newRedirected(refused.Moved, to[0])
	next.redirects, next.limit, next.quiet = a.redirects+1, a.limit, a.quiet
	return next
}

// dropTrip ends a trip before the client has left its room.
func (n *connection) dropTrip() {
	if n.trip != nil {
		n.trip.attempt.discard()
		n.trip = nil
	}
}

// continueTrip is called in each Step. Once the connection to the other server is established, the
// client leaves its room. If no address answers, the client stays.
func (n *connection) continueTrip() {
	t := n.trip
	if t == nil || t.left {
		return
	}
	ended, err := t.attempt.result()
	late := n.clock.Now()-t.since >= travelTime
	switch {
	case !ended && t.attempt.established():
		n.depart(t)
	case ended && !late && n.dialNext(t):
	case ended || late:
		n.log.Warn("the server of the other room does not answer, the client stays in its room", "error", err)
		n.dropTrip()
		if t.closed != nil {
			n.end(*t.closed)
		}
	}
}

// depart leaves the room, and sends the hello to the other server.
func (n *connection) depart(t *trip) {
	now := n.clock.Now()
	t.left, t.before = true, n.present()
	if r := n.rejoin; r != nil {
		r.discard()
	}
	if n.session != nil {
		n.session.Close(netloop.CodeMoved, "")
	}
	n.rejoin = &rejoin{since: now, next: never, state: State{Phase: Loading}, dialing: t.attempt, moves: true, trip: t}
	n.setState(State{Phase: Moving})
	t.attempt.began = now
	t.attempt.send()
}

// arrival reports whether the client must wait longer for the other server to accept it, after the
// welcome has arrived. It returns an error if the server does not accept it.
func (a *attempt) arrival() (waits bool, err error) {
	select {
	case <-a.session.Accepted():
		return false, nil
	default:
	}
	if why, ends := a.session.Cause(); ends {
		return false, &why
	}
	return true, nil
}

// errTooLate is the error of a server that has not accepted the client within travelTime.
var errTooLate = &transport.Closed{Code: transport.CodeTimeout, Text: fmt.Sprintf("the other server has not accepted the client within %v", travelTime)}

// finishTrip handles the result of the attempt of a client that has left its room.
func (n *connection) finishTrip(r *rejoin, now time.Duration) {
	a := r.dialing
	ended, err := a.result()
	waits := !ended
	if ended && err == nil {
		waits, err = a.arrival()
	}
	switch {
	case waits && now-a.began < travelTime:
		return
	case waits:
		a.discard()
		err = errTooLate
	case err == nil:
		if err = n.welcomed(a); err == nil {
			a.cancel()
			r.dialing, r.dialed = nil, a
			return
		}
		a.session.Close(transport.CodeProtocol, err.Error())
		err = &transport.Closed{Code: transport.CodeProtocol, Text: err.Error()}
	}
	a.cancel()
	if next := n.redirected(a, err); next != nil {
		r.dialing, r.trip.attempt = next, next
		n.start(next)
		return
	}
	n.turnBack(r, a, err)
}

// turnBack returns to the old room by the secret of the old seat, because the other server has not
// accepted the client.
func (n *connection) turnBack(r *rejoin, a *attempt, err error) {
	t := r.trip
	n.trip = nil
	if t.closed != nil || len(n.secret) == 0 {
		why, _ := a.failure(err)
		r.dialing = nil
		n.end(why)
		return
	}
	n.log.Warn("the other server does not accept the client, which returns to its room", "error", err)
	n.stats.Drops++
	n.rejoin = &rejoin{since: n.clock.Now(), next: n.clock.Now(), state: t.before, err: err}
	n.reconnect()
}

// outlives reports whether the client continues to the other server although the first server has
// closed the session: that server ends, so there is no way back.
func (n *connection) outlives(why netloop.Closed) bool {
	t := n.trip
	if t == nil || t.left || why.Code != netloop.CodeClosing {
		return false
	}
	t.closed = &why
	n.rejoin = &rejoin{since: n.clock.Now(), next: never, state: State{Phase: Loading}, moves: true}
	n.setState(State{Phase: Moving})
	return true
}

// discard cancels the attempts of a rejoin.
func (r *rejoin) discard() {
	for _, a := range []*attempt{r.dialing, r.dialed} {
		if a != nil {
			a.discard()
		}
	}
}

// hold is called by the dial once the connection is established: send sends the hello.
func (a *attempt) hold(send func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.send = send
}

// established reports whether the connection waits to send its hello.
func (a *attempt) established() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.send != nil
}

// reachable returns the addresses with a carrier of this client, those of its own carrier first.
func reachable(to transport.Destination, own Transport) []transport.Address {
	all := slices.DeleteFunc(slices.Clone(to), func(a transport.Address) bool {
		kind, known := carrier(&a)
		return !known || !built[kind]
	})
	rank := func(a transport.Address) int {
		if kind, _ := carrier(&a); kind != own {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(all, func(a, b transport.Address) int { return cmp.Compare(rank(a), rank(b)) })
	return all
}

// carrier returns the transport of an address, if this version knows it.
func carrier(a *transport.Address) (kind Transport, known bool) {
	return kind, kind.UnmarshalText([]byte(a.Carrier)) == nil
}

// reach returns the address, the certificates and the transport with which a client dials another
// server than that of its Config.
func (cfg *Config) reach(to *transport.Address) (addr string, conf *tls.Config, how Transport, err error) {
	how, _ = carrier(to)
	addr = to.Addr
	host := addr
	switch u, malformed := url.Parse(addr); {
	case how == WebSocket:
		if addr, err = wsnet.URL(addr, quicnet.OnLoopback(addr)); err != nil {
			return "", nil, how, err
		}
		host = wsnet.HostOf(addr)
	case how == WebTransport && malformed == nil && u.Scheme == "https":
		addr, host = u.Host, u.Host
	}
	switch {
	case len(to.Hashes) > 0:
		conf, err = quicnet.PinnedTLS(host, to.Hashes)
	case cfg.TLS != nil:
		conf = cfg.TLS.Clone()
		conf.ServerName, _, err = net.SplitHostPort(host)
	default:
		conf, err = quicnet.ClientTLS(host, quicnet.Trust{})
	}
	if err != nil {
		return "", nil, how, err
	}
	conf.ServerName = cmp.Or(to.Name, conf.ServerName)
	return addr, conf, how, nil
}
