package nats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/netloop/netloop/cluster"
	clusterv1 "github.com/netloop/netloop/proto/netloop/cluster/v1"
)

// lease is the lease of this server's names. The goroutine of the heartbeats writes it, with the
// lock.
type lease struct {
	term      uint64
	revision  uint64 // of the newest known record; 0: none
	count     uint64
	stored    bool          // the store has a record of this term
	confirmed time.Duration // sending of the newest heartbeat that the store has; 0: none
	since     time.Duration // confirmed without a longer gap than SuspectBeats, since then
	claimed   bool          // the names of earlier terms were claimed again
}

// store is the stream of the cluster.
type store struct {
	stream  jetstream.Stream
	base    uint64 // the epoch is base and the revision: it grows, also if the store was lost
	problem error  // that an operator has to solve
}

const (
	// recordTTL removes the records of servers that have ended, and of their names. Names of
	// running servers are written again after renewAfter. The clocks of NATS servers may differ by
	// the rest.
	recordTTL  = 24 * time.Hour
	renewAfter = time.Hour
	// maxStore is the limit of the store: some 200 000 names.
	maxStore = 64 << 20
	// maxRecord is the limit of a record: a heartbeat with eight addresses.
	maxRecord = 16 << 10
	// epochKey is the key of the base in the stream's metadata.
	epochKey = "netloop_epoch"
	// notClustered is the error code of NATS for replicas on a single server.
	notClustered jetstream.ErrorCode = 10074
)

var (
	errConflict = errors.New("cluster/nats: another record was stored before")
	errSynced   = errors.New("cluster/nats: the next heartbeat continues the record of the lease")
)

// beats sends a heartbeat in each Beat until Close. The first result that lasts is sent to first.
func (c *Cluster) beats(first chan<- error) {
	told := false
	for c.ctx.Err() == nil {
		begin := time.Now()
		err := c.beat()
		if errors.Is(err, errSynced) {
			err = c.beat()
		}
		c.main.pollRefusal()
		if !told && (err == nil || errors.Is(err, cluster.ErrTaken)) {
			told = true
			first <- err
		}
		c.mu.Lock()
		changed := c.peers.sweep(c.now())
		c.mu.Unlock()
		c.after("", changed, false)
		signal(c.tidy)
		c.pause(c.cfg.Beat - time.Since(begin))
	}
}

// beat sends a heartbeat, and learns the state of the lease if the store refuses it.
func (c *Cluster) beat() error {
	ctx, cancel := context.WithTimeout(c.ctx, c.cfg.Beat*9/10)
	defer cancel()
	c.mu.Lock()
	c.lease.count++
	sent, revision := c.now(), c.lease.revision
	l := &clusterv1.Lease{
		Id: c.id, Term: c.lease.term, Count: c.lease.count, Uptime: int64(sent), Board: c.sent, Run: c.run,
		Server: serverMessage(c.self.Server, c.load()),
	}
	opened := c.store.stream != nil
	c.mu.Unlock()
	half, end := context.WithTimeout(ctx, c.cfg.Beat/2)
	seq, err := c.records.put(half, "lease."+c.id, encode(l), revision, recordTTL)
	end()
	if err != nil {
		return c.sync(ctx)
	}
	if !opened {
		if err := c.openStore(ctx); err != nil {
			return err
		}
	}
	c.confirm(sent, seq)
	return nil
}

// confirm notes that the store has a heartbeat.
func (c *Cluster) confirm(sent time.Duration, revision uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lease.confirmed == 0 || sent-c.lease.confirmed > cluster.SuspectBeats*c.cfg.Beat {
		c.lease.since = sent
	}
	c.lease.revision, c.lease.confirmed, c.lease.stored = revision, sent, true
}

// sync reads the record of the own lease. The next heartbeat confirms it. If the lease was ended,
// or is not there, the next term begins.
func (c *Cluster) sync(ctx context.Context) error {
	if err := c.openStore(ctx); err != nil {
		return err
	}
	l, revision, err := c.readLease(ctx, c.id)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case l != nil && l.GetRun() != c.run && !l.GetEnded() && !l.GetLeft():
		if c.lease.confirmed == 0 {
			c.store.problem = fmt.Errorf("%w: another server has the id %s", cluster.ErrTaken, c.id)
		}
		return cluster.ErrTaken
	case l == nil || l.GetRun() != c.run || l.GetEnded() || l.GetTerm() != c.lease.term:
		if l != nil || c.lease.confirmed > 0 {
			c.lease.term = max(c.lease.term, l.GetTerm()) + 1
			c.lease.claimed, c.lease.stored = len(c.held) == 0, false
		}
	}
	c.lease.revision = revision
	return errSynced
}

// validLocked reports whether no other server can have ended the lease: the newest heartbeat that
// the store has was sent less than HoldBeats ago.
func (c *Cluster) validLocked(now time.Duration) bool {
	return c.lease.stored && now-c.lease.confirmed < cluster.HoldBeats*c.cfg.Beat
}

// leave ends the lease: all names of the server are free.
func (c *Cluster) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*c.cfg.Beat)
	defer cancel()
	l := &clusterv1.Lease{Id: c.id, Term: c.lease.term, Left: true, Run: c.run}
	if _, err := c.records.put(ctx, "lease."+c.id, encode(l), c.lease.revision, recordTTL); err == nil {
		return
	}
	if l, revision, err := c.readLease(ctx, c.id); err == nil && l.GetRun() == c.run {
		end := &clusterv1.Lease{Id: c.id, Term: l.GetTerm(), Left: true, Run: c.run}
		// If that fails, the lease expires.
		_, _ = c.records.put(ctx, "lease."+c.id, encode(end), revision, recordTTL)
	}
}

// openStore finds or makes the stream.
func (c *Cluster) openStore(ctx context.Context) error {
	if c.main.away() {
		return cluster.ErrBusy
	}
	name := "NETLOOP_" + c.cfg.Name
	s, err := c.js.Stream(ctx, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		s, err = c.makeStore(ctx, name)
	}
	if err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.store.problem = nil
		if _, ok := errors.AsType[*jetstream.APIError](err); ok {
			c.store.problem = fmt.Errorf("the stream %s: %w", name, err)
		}
		return err
	}
	info := s.CachedInfo()
	base, err := strconv.ParseUint(info.Config.Metadata[epochKey], 10, 64)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || base >= 1<<62 || !info.Config.AllowMsgTTL || info.Config.AllowDirect || info.Config.MaxMsgsPerSubject != 1 {
		c.store.problem = fmt.Errorf("the stream %s is not one of netloop, or NATS is older than 2.11", name)
		return c.store.problem
	}
	c.store = store{stream: s, base: base}
	return nil
}

// makeStore makes the stream. The base of its epochs is the time in microseconds, like the first
// incarnation of a server without a cluster: it is larger than all epochs before, since no store
// has that many revisions. A server that knows larger epochs continues them.
func (c *Cluster) makeStore(ctx context.Context, name string) (jetstream.Stream, error) {
	base := uint64(max(time.Now().UnixMicro(), 0))
	c.mu.Lock()
	for _, h := range c.held {
		base = max(base, uint64(h.epoch)+1)
	}
	c.mu.Unlock()
	cfg := jetstream.StreamConfig{
		Name: name, Subjects: []string{c.prefix + "lease.*", c.prefix + "name.*"}, Storage: jetstream.FileStorage,
		MaxMsgsPerSubject: 1, MaxBytes: maxStore, MaxMsgSize: maxRecord, Discard: jetstream.DiscardNew, AllowMsgTTL: true,
		Replicas: cmp.Or(c.cfg.Replicas, 3), Metadata: map[string]string{epochKey: strconv.FormatUint(base, 10)},
	}
	s, err := c.js.CreateStream(ctx, cfg)
	if api, ok := errors.AsType[*jetstream.APIError](err); ok && api.ErrorCode == notClustered && c.cfg.Replicas == 0 {
		cfg.Replicas = 1
		s, err = c.js.CreateStream(ctx, cfg)
	}
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		return c.js.Stream(ctx, name)
	}
	return s, err
}

// records are the records of the store, by the ends of their subjects.
type records interface {
	// put stores a record if the newest one of its subject has the revision, 0 for none. The error
	// is errConflict if it has another one; after each other error the record may be stored, also
	// later.
	put(ctx context.Context, subject string, data []byte, revision uint64, ttl time.Duration) (uint64, error)
	// get returns the newest record of a subject, and 0 if there is none. It may be old.
	get(ctx context.Context, subject string) (data []byte, revision uint64, err error)
	// remove removes a record if it is the newest one.
	remove(ctx context.Context, revision uint64) error
}

// natsRecords implements records by the stream.
type natsRecords struct{ *Cluster }

func (c natsRecords) put(ctx context.Context, subject string, data []byte, revision uint64, ttl time.Duration) (uint64, error) {
	if c.main.away() {
		return 0, cluster.ErrBusy
	}
	ttl = (ttl + time.Second - 1).Truncate(time.Second) // NATS knows whole seconds, from one on.
	m := &nats.Msg{Subject: c.prefix + subject, Data: data}
	ack, err := c.js.PublishMsg(ctx, m, jetstream.WithExpectLastSequencePerSubject(revision), jetstream.WithMsgTTL(ttl), jetstream.WithRetryAttempts(0))
	if api, ok := errors.AsType[*jetstream.APIError](err); ok && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant) {
		return 0, errConflict
	}
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}

// stream returns the stream, or nil while the store cannot be reached.
func (c natsRecords) stream() jetstream.Stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.main.lost {
		return nil
	}
	return c.store.stream
}

func (c natsRecords) get(ctx context.Context, subject string) (data []byte, revision uint64, err error) {
	s := c.stream()
	if s == nil {
		return nil, 0, cluster.ErrBusy
	}
	m, err := s.GetLastMsgForSubject(ctx, c.prefix+subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	return m.Data, m.Sequence, nil
}

func (c natsRecords) remove(ctx context.Context, revision uint64) error {
	s := c.stream()
	if s == nil {
		return cluster.ErrBusy
	}
	return s.DeleteMsg(ctx, revision)
}

// readLease returns the lease of a server, or nil.
func (c *Cluster) readLease(ctx context.Context, id string) (*clusterv1.Lease, uint64, error) {
	data, revision, err := c.records.get(ctx, "lease."+id)
	if err != nil || revision == 0 {
		return nil, 0, err
	}
	l, err := decodeLease(id, data)
	return l, revision, err
}
