package netloop

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/netloop/netloop/cluster"
	"github.com/netloop/netloop/internal/clock"
	"github.com/netloop/netloop/internal/inspect"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/membership"
	"github.com/netloop/netloop/internal/metrics"
	"github.com/netloop/netloop/internal/net/endpoint"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
	clusterv1 "github.com/netloop/netloop/proto/netloop/cluster/v1"
)

// Cluster makes a server a member of a cluster: its rooms, other than its default room, have names
// that are unique among all servers, and OpenRoom, Reserve, ListRooms, WatchRooms, SendRoom,
// CloseRoom and Client.Move accept the rooms of all servers. Each room alone decides about its
// seats. The zero Cluster has no other servers.
//
// If the cluster does not answer, the server's rooms continue, and tickets and seats are valid. No
// room is opened then, and after 9 s the rooms, other than the default room, admit no client
// without a ticket or a seat: another server may have opened a room of that name.
type Cluster struct {
	// Via is the connection to the other servers: a Cluster of package cluster/nats, or a member
	// of a [cluster.Memory]. Nil is none. Listen joins, and the end of the server closes it.
	Via cluster.Cluster
	// ID identifies this run of the server: at most 64 letters, digits, - and _. It differs after
	// each start. Empty is a random one.
	ID string
	// Region and Zone tell where the machine is. Both may be empty.
	Region, Zone string
	// HandOver lets rooms survive the end of the server: when Run's context ends, each room with
	// functions of [Room.OnHandOver] first moves to another server, as by [Room.HandOver], within
	// 20 s or DrainTimeout, if that is longer. All other rooms drain afterwards.
	HandOver bool
	// LocalTokens decides about players with a token ([Auth]) while the cluster does not answer. A
	// token is accepted by one server of the cluster, once. With LocalTokens each server then
	// accepts it once by itself; without, it refuses the player with [CodeBusy].
	LocalTokens bool
	// Duplicate is the policy for a player ([Join] Subject) that joins a room while it has a
	// client in another room of the cluster; zero means [DuplicateAllow]. With [DuplicateTakeOver]
	// the client there leaves with [CodeReplaced] first, with [DuplicateRefuse] the newcomer is
	// refused with [CodeRefused]. Spectators, and clients without a Subject, may be in any number
	// of rooms. Within one room [RoomSpec] Duplicate decides. All servers of a cluster use the
	// same policy.
	//
	// The server of the room has the name of the player in the cluster, from admission until the
	// seat ends. Moves and hand-overs pass it on. While the cluster does not answer, players
	// without a place on this server are refused with [CodeBusy], and so are players whose place
	// is on a killed server, for 10 s. After a partition the client of the older claim leaves with
	// CodeReplaced.
	Duplicate DuplicatePolicy
	// Addr is the address at which players reach Listen, host:port. Empty is the address of
	// Listen, which must name one of the machine then. Players in browsers reach the same host, or
	// WebURL.
	Addr string
}

// Place selects the server of a room, in a cluster.
type Place struct {
	// Server is the id of a server. Empty is the least loaded server of the region that has room.
	Server string
	// Region is the region of the server, if Server is empty. Empty is that of the asking server.
	Region string
}

func (c *Cluster) validate() error {
	if c.Via == nil {
		if *c != (Cluster{}) {
			return ConfigError("Cluster", fmt.Sprintf("%+v", *c), "set Via too: the connection to the other servers")
		}
		return nil
	}
	if c.Duplicate > DuplicateAllow {
		return ConfigError("Cluster.Duplicate", c.Duplicate, "use DuplicateTakeOver, DuplicateRefuse or DuplicateAllow")
	}
	if _, _, err := net.SplitHostPort(c.Addr); c.Addr != "" && err != nil {
		return ConfigError("Cluster.Addr", c.Addr, "use host:port")
	}
	s := cluster.Server{ID: cmp.Or(c.ID, "random"), Region: c.Region, Zone: c.Zone, Addresses: []cluster.Address{{Addr: c.Addr}}}
	if err := s.Check(); err != nil {
		return fmt.Errorf("Cluster: %w", err)
	}
	return nil
}

// ID returns the id of the server in its cluster, or "" without a cluster. Any goroutine may call
// it.
func (s *Server) ID() string {
	if s.member == nil {
		return ""
	}
	return s.member.ID()
}

// openMember prepares the membership. Listen joins.
func (s *Server) openMember() {
	c := s.cfg.Cluster
	if c.Via == nil {
		return
	}
	s.moves = new(inspect.Moves)
	s.member = membership.New(membership.Config{
		Via: c.Via, Load: s.load, Lost: s.lostName, LostPlayer: s.lostPlayer, Log: s.log, Now: func() time.Duration { return s.clock.Now() },
	})
	membership.Handle(s.member, "open", s.openCalled)
	membership.Handle(s.member, "reserve", s.reserveCalled)
	membership.Handle(s.member, "close", s.closeCalled)
	s.openTravel()
	membership.Handle(s.member, "seat", s.seatCalled)
	s.member.HandleMail(s.mailReceived)
}

// joinCluster joins, once the addresses of the server are known.
func (s *Server) joinCluster(ctx context.Context) error {
	if s.member == nil {
		return nil
	}
	c := s.cfg.Cluster
	addresses, err := s.addresses()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, cluster.StoreTime)
	defer cancel()
	err = s.member.Join(ctx, cluster.Server{
		ID: cmp.Or(c.ID, hex.EncodeToString(s.instance[:])), Region: c.Region, Zone: c.Zone,
		Schema: hex.EncodeToString(s.schema.s.Fingerprint()), Addresses: addresses,
	})
	if err != nil {
		return fmt.Errorf("netloop: Cluster: %w", err)
	}
	return nil
}

// leaveCluster ends the membership, after the last room has ended.
func (s *Server) leaveCluster(ctx context.Context) error {
	if s.member == nil {
		return nil
	}
	s.closeTravel()
	if err := s.member.Close(ctx); err != nil {
		return fmt.Errorf("netloop: Cluster: %w", err)
	}
	return nil
}

// leaveInTime is leaveCluster at the end of the server. The server has not failed if the cluster
// does not answer: then its names are free when its lease expires.
func (s *Server) leaveInTime() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := s.leaveCluster(ctx); err != nil {
		s.log.Warn("cluster does not answer, the names of this server are free later", "error", err)
	}
}

// addresses returns the addresses at which players reach this server.
func (s *Server) addresses() (all []cluster.Address, err error) {
	switch {
	case s.listener == nil && s.cfg.Cluster.Addr != "": // A server of a test in memory.
		return []cluster.Address{{Carrier: "quic", Addr: s.cfg.Cluster.Addr}}, nil
	case s.listener == nil:
		return nil, nil
	}
	game := cmp.Or(s.cfg.Cluster.Addr, s.listener.Addr().String())
	host, _, err := net.SplitHostPort(game)
	if ip, bad := netip.ParseAddr(host); err != nil || bad == nil && ip.IsUnspecified() {
		return nil, ConfigError("Cluster.Addr", `""`, "name the address at which players reach this server, which listens on %s", game)
	}
	var hashes [][]byte
	if k := s.certificate.Load(); k != nil && k.Pinnable() {
		hash := k.Hash()
		hashes = [][]byte{hash[:]}
	}
	all = []cluster.Address{
		{Carrier: "quic", Addr: game, Hashes: hashes},
		{Carrier: "webtransport", Addr: "https://" + game + endpoint.Path, Hashes: hashes},
	}
	secure, pages := s.public.scheme == "https", s.public.host
	if pages == "" && s.web != nil {
		_, port, err := net.SplitHostPort(s.web.Addr().String())
		if err != nil {
			return nil, err
		}
		secure, pages = s.cfg.WebTLS, net.JoinHostPort(host, port)
	}
	switch {
	case pages == "":
	case secure:
		all = append(all, cluster.Address{Carrier: "websocket", Addr: "wss://" + pages + endpoint.Path})
	default:
		all = append(all, cluster.Address{Carrier: "websocket", Addr: "ws://" + pages + endpoint.Path})
	}
	return all, nil
}

// load returns the server's load, for the placing of rooms.
func (s *Server) load() cluster.Load {
	l := cluster.Load{MaxRooms: s.cfg.MaxRooms, MaxClients: s.cfg.MaxClients, Draining: s.draining.Load() || s.leaving.Load()}
	if s.rooms == nil { // New has not opened the default room.
		return l
	}
	for _, r := range s.rooms.All() {
		players, spectators, _ := r.e.Admission.Count()
		l.Clients += players + spectators
		l.Overload = max(l.Overload, int(r.Overload()))
	}
	l.Rooms = s.rooms.Len()
	return l
}

// claimName takes the name of a room in the cluster. The epoch is 0 without a cluster.
func (s *Server) claimName(ctx context.Context, name string) (cluster.Epoch, error) {
	if s.member == nil {
		return 0, nil
	}
	if !utf8.ValidString(name) {
		return 0, ConfigError("Room.Name", name, "use UTF-8: the room is part of a cluster")
	}
	epoch, err := s.member.Claim(ctx, name)
	return epoch, clusterError(err)
}

// releaseName gives the name of a room back.
func (s *Server) releaseName(name string, epoch cluster.Epoch) {
	if s.member != nil && epoch != 0 {
		s.member.Release(name, epoch)
	}
}

// clusterError returns the public error for one of package cluster.
func clusterError(err error) error {
	switch {
	case errors.Is(err, cluster.ErrTaken):
		return ErrRoomExists
	case errors.Is(err, cluster.ErrBusy):
		return ErrClusterBusy
	case errors.Is(err, cluster.ErrClosed):
		return ErrClosing
	}
	return err
}

// hold returns nil while the room may admit newcomers: see room.Config.
func (r *Room) hold() error {
	e := cluster.Epoch(r.epoch.Load())
	if e == 0 {
		return nil
	}
	if r.transfer.moving.Load() {
		return errMoving
	}
	if r.transfer.seating.Load() > int64(r.server.clock.Now()) {
		return errSeating
	}
	switch err := r.server.member.Hold(r.spec.Name, e); {
	case err == nil:
		return nil
	case errors.Is(err, cluster.ErrBusy):
		return transport.Refuse(CodeBusy, "the room admits no new players while its cluster does not answer: try again later")
	}
	return transport.Refuse(CodeClosing, textElsewhere)
}

// lostName ends a room of this server whose name another server has claimed meanwhile.
func (s *Server) lostName(name string, e cluster.Epoch) {
	if r, ok := s.rooms.Get(name); ok && r.epoch.Load() == uint64(e) {
		s.log.Warn("another server has opened a room of this name, the room ends", "room", name)
		go r.loseName()
	}
}

// announce tells the other servers the room's entry. The room's listing mutex is held.
func (r *Room) announce() {
	m, p := r.server.member, &r.listing.entry
	if m == nil || r.epoch.Load() == 0 {
		return
	}
	entry := &clusterv1.Entry{Kind: []byte(p.kind), Players: uint32(p.players), MaxClients: uint32(p.max), Unlisted: !r.listing.listed}
	if r.listing.listed {
		entry.Info = []byte(p.packed)
	}
	if r.spec.Code != "" {
		entry.Code = membership.CodeDigest(r.spec.Code)
	}
	data, err := proto.Marshal(entry)
	if err == nil && len(data) <= cluster.MaxEntry {
		m.Announce(r.spec.Name, data)
		return
	}
	r.e.Log().Error("other servers do not list the room: its published info is too large", "bytes", len(data), "limit", cluster.MaxEntry)
	m.Announce(r.spec.Name, nil)
}

// startSync starts to copy the rooms of other servers into the listing, until ctx ends. The
// returned function waits for the end.
func (s *Server) startSync(ctx context.Context) (wait func()) {
	if s.member == nil {
		return func() {}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-ctx.Done():
				return
			case <-s.member.Changed():
			}
			began := s.clock.Now()
			s.syncRooms()
			if !clock.Sleep(ctx, notifyGap(s.clock.Now()-began)) {
				return
			}
		}
	}()
	return func() { <-ended }
}

// syncRooms copies the changes of other servers' rooms into the listing.
func (s *Server) syncRooms() {
	s.member.Sync(func(c membership.Change) {
		if c.Entry == nil || c.Entry.GetUnlisted() {
			s.listing.Set(c.Number, nil)
			return
		}
		s.listing.Set(c.Number, &listingEntry{
			name: c.Room, kind: string(c.Entry.GetKind()),
			players: int(c.Entry.GetPlayers()), max: int(c.Entry.GetMaxClients()), packed: schema.Parcel(c.Entry.GetInfo()),
		})
	})
}

// ClusterConnected implements metrics.Server.
func (m serverMetrics) ClusterConnected(f *metrics.Family) {
	if m.s.member == nil {
		return
	}
	connected := uint64(0)
	if m.s.member.Health().OK {
		connected = 1
	}
	f.Set(connected)
}

// ClusterServers implements metrics.Server.
func (m serverMetrics) ClusterServers(f *metrics.Family) {
	if m.s.member == nil {
		return
	}
	var alive, suspect uint64
	for _, s := range m.s.member.Servers() {
		if s.Suspect {
			suspect++
		} else {
			alive++
		}
	}
	f.Set(alive, "alive")
	f.Set(suspect, "suspect")
}

// ClusterRooms implements metrics.Server.
func (m serverMetrics) ClusterRooms(f *metrics.Family) {
	if m.s.member != nil {
		f.Set(uint64(m.s.member.Rooms()))
	}
}

// Messages to rooms of other servers: a room's message that finds no room of its server becomes a
// letter, which package membership carries.

// deliver queues a room's message at a room of this server. It returns room.ErrElsewhere if
// another server may have the room.
func (s *Server) deliver(name string, it rpcqueue.Item) error {
	to, ok := s.rooms.Get(name)
	switch {
	case ok:
		return to.e.Mailbox.Receive(it)
	case s.member != nil:
		return room.ErrElsewhere
	}
	return room.ErrEnded
}

// mailOf returns the message for another server.
func mailOf(to string, l *room.Letter) membership.Mail {
	return membership.Mail{
		RoomMessage: &clusterv1.RoomMessage{
			To: []byte(to), From: []byte(l.From.Room), Kind: []byte(l.From.Kind), Program: l.Program,
			Method: []byte(l.Method), Stage: uint32(l.Stage), Payload: l.Payload,
		},
		Done: func(err error) {
			if errors.Is(err, membership.ErrNoAnswer) {
				err = room.ErrNoAnswer
			}
			l.Done(err)
		},
	}
}

// mailReceived queues a message of another server at a room of this one.
func (s *Server) mailReceived(m membership.Mail) {
	r, ok := s.rooms.Get(string(m.GetTo()))
	if !ok || r == s.room {
		m.Done(room.ErrNoRoom)
		return
	}
	stage := loop.Stage(min(m.GetStage(), maxStage))
	r.e.Mailbox.Accept(&room.Letter{
		From: room.Sender{Room: string(m.GetFrom()), Kind: string(m.GetKind())}, Program: m.GetProgram(),
		Method: string(m.GetMethod()), Stage: stage, Payload: m.GetPayload(), Done: m.Done,
	})
}

// maxStage is larger than each valid stage.
const maxStage = 255

// postElsewhere sends a message of the program to a room of another server, and waits for the
// outcome.
func (e *RPC[M]) postElsewhere(ctx context.Context, s *Server, name string, m M) error {
	if err := e.m.Belongs(s.schema.s); err != nil {
		return fmt.Errorf("netloop: RPC.PostRoom: %w", err)
	}
	outcome := make(chan error, 1) // One sender, one value.
	l, err := room.NewLetter(e.m, schema.Erase(m), func(err error) { outcome <- err })
	if err != nil {
		return fmt.Errorf("netloop: RPC.PostRoom: %w", err)
	}
	s.member.Send(mailOf(name, l))
	select {
	case err := <-outcome:
		return public(err)
	case <-ctx.Done():
		return fmt.Errorf("netloop: RPC.PostRoom: %w", context.Cause(ctx))
	}
}
