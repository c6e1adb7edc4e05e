package nats

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"github.com/netloop/netloop/cluster"
	"github.com/netloop/netloop/internal/clock"
	clusterv1 "github.com/netloop/netloop/proto/netloop/cluster/v1"
)

// hold is a name of this server, until Release.
type hold struct {
	epoch    cluster.Epoch
	revision uint64 // of the record
	nonce    uint64
	term     uint64        // of the lease in the record
	written  time.Duration // the time of the record
	lost     bool
}

// doubt is a record that may be stored, and that no room of this server uses: a claim without an
// answer, or a failed release.
type doubt struct {
	nonce uint64
	since time.Duration
}

const (
	// maxDoubts is the limit of doubts: beyond it a name remains taken until the server ends.
	maxDoubts = 4096
	// doubtBeats is the number of heartbeats for which a record may still arrive: NATS keeps a
	// message of a lost connection for less.
	doubtBeats = 30
	// storeTry is the limit of one try, in heartbeats, and tryAgain the time until the next one.
	storeTry = 2
	tryAgain = 20 * time.Millisecond
	// atOnce is the number of records that are read and written at once.
	atOnce = 32
)

// random returns a random number.
func random() uint64 {
	var b [8]byte
	rand.Read(b[:]) // Never fails.
	return binary.LittleEndian.Uint64(b[:])
}

// retry calls fn until its error is final, and returns ErrBusy at the end of ctx and after
// StoreTime.
func (c *Cluster) retry(ctx context.Context, name string, fn func(context.Context) error) error {
	if err := cluster.CheckName(name); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, cluster.StoreTime)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	for {
		c.mu.Lock()
		closed := !c.joined || c.closed
		c.mu.Unlock()
		if closed {
			return cluster.ErrClosed
		}
		try, end := context.WithTimeout(ctx, storeTry*c.cfg.Beat)
		err := fn(try)
		end()
		switch {
		case err == nil, errors.Is(err, cluster.ErrTaken), errors.Is(err, cluster.ErrGone):
			return err
		case ctx.Err() != nil:
			return cluster.ErrBusy
		}
		clock.Sleep(ctx, tryAgain)
	}
}

// Claim implements cluster.Cluster.
func (c *Cluster) Claim(ctx context.Context, name string, keep time.Duration) (cluster.Epoch, error) {
	if !c.begin(name) {
		return 0, cluster.ErrTaken
	}
	defer c.end(name)
	h := &hold{nonce: random()}
	var expected uint64 // the revision to replace
	sent := false
	err := c.retry(ctx, name, func(ctx context.Context) (err error) {
		expected, err = c.tryClaim(ctx, name, keep, h, expected, &sent)
		return err
	})
	switch {
	case err == nil:
		return h.epoch, nil
	case sent && keep == 0 && h.revision == 0:
		c.doubtful(name, h.nonce)
	}
	return 0, err
}

// begin reports whether this server has no other claim of the name under way.
func (c *Cluster) begin(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.claiming[name] {
		return false
	}
	c.claiming[name] = true
	return true
}

func (c *Cluster) end(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.claiming, name)
}

// tryClaim writes a record, or reads the present one, and returns the revision that the next try
// replaces.
func (c *Cluster) tryClaim(ctx context.Context, name string, keep time.Duration, h *hold, expected uint64, sent *bool) (uint64, error) {
	c.mu.Lock()
	h.term, h.written = c.lease.term, c.now()
	own := c.held[name]
	may := c.validLocked(h.written) && c.lease.claimed && (keep > 0 || own != nil || len(c.held) < cluster.MaxNames)
	c.mu.Unlock()
	switch {
	case own != nil && !own.lost:
		return 0, cluster.ErrTaken
	case !may:
		return expected, cluster.ErrBusy
	}
	record, ttl := &clusterv1.Name{Name: name, Holder: c.id, Term: h.term, Nonce: h.nonce}, recordTTL
	if keep > 0 {
		record, ttl = &clusterv1.Name{Name: name, Nonce: h.nonce}, keep
	}
	*sent = true
	revision, err := c.records.put(ctx, "name."+hashOf(name), encode(record), expected, ttl)
	if err == nil {
		return 0, c.claimed(name, keep, h, revision)
	}
	if !errors.Is(err, errConflict) {
		return expected, err
	}
	is, revision, err := c.readName(ctx, name)
	switch {
	case err != nil:
		return expected, err
	case is.GetNonce() == h.nonce && is != nil: // An earlier try was stored.
		return 0, c.claimed(name, keep, h, revision)
	}
	free, err := c.free(ctx, is)
	switch {
	case err != nil:
		return expected, err
	case !free:
		*sent = false // The newer record has replaced the own one, or the own one was refused.
		return expected, cluster.ErrTaken
	}
	return revision, cluster.ErrBusy // The next try replaces the record.
}

// claimed notes a claim that is stored. If the lease may have ended meanwhile, another server may
// claim the name, and the next try finds out.
func (c *Cluster) claimed(name string, keep time.Duration, h *hold, revision uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	h.epoch = cluster.Epoch(c.store.base + revision)
	if keep > 0 {
		return nil
	}
	if h.term != c.lease.term || !c.validLocked(c.now()) {
		return cluster.ErrBusy
	}
	h.revision = revision
	c.held[name] = h
	return nil
}

// free reports whether the holder of a record has lost its lease. It ends the lease of a silent
// one.
func (c *Cluster) free(ctx context.Context, is *clusterv1.Name) (bool, error) {
	if is == nil {
		return true, nil
	}
	holder := is.GetHolder()
	if holder == "" {
		return false, nil
	}
	if holder == c.id { // Claim has checked that no room uses it.
		return true, nil
	}
	l, revision, err := c.readLease(ctx, holder)
	if err != nil {
		return false, err
	}
	if l == nil || l.GetLeft() || l.GetTerm() > is.GetTerm() || l.GetEnded() {
		return true, nil
	}
	c.mu.Lock()
	now := c.now()
	since := c.lease.since
	silent := now-c.lease.confirmed < cluster.SuspectBeats*c.cfg.Beat && c.peers.silent(holder, l.GetTerm(), l.GetCount(), since, now)
	c.mu.Unlock()
	if !silent {
		return false, nil
	}
	end := &clusterv1.Lease{Id: holder, Term: l.GetTerm(), Ended: true, Count: l.GetCount(), Run: l.GetRun()}
	_, err = c.records.put(ctx, "lease."+holder, encode(end), revision, recordTTL)
	if errors.Is(err, errConflict) {
		return false, nil
	}
	return err == nil, err
}

// readName returns the record of a name, or nil.
func (c *Cluster) readName(ctx context.Context, name string) (*clusterv1.Name, uint64, error) {
	data, revision, err := c.records.get(ctx, "name."+hashOf(name))
	if err != nil || revision == 0 {
		return nil, 0, err
	}
	is, err := decodeName(data)
	if err == nil && is.GetName() != name {
		err = errMessage
	}
	return is, revision, err
}

// Hold implements cluster.Cluster.
func (c *Cluster) Hold(name string, e cluster.Epoch) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.held[name]
	switch {
	case !c.joined || c.closed:
		return cluster.ErrClosed
	case h == nil || h.epoch < e:
		return cluster.ErrGone
	case h.lost || h.epoch > e:
		return cluster.ErrTaken
	case h.term != c.lease.term || !c.validLocked(c.now()):
		return cluster.ErrBusy
	}
	return nil
}

// Release implements cluster.Cluster.
func (c *Cluster) Release(ctx context.Context, name string, e cluster.Epoch) error {
	c.mu.Lock()
	h := c.held[name]
	mine := h != nil && h.epoch == e
	if mine {
		delete(c.held, name)
	}
	c.mu.Unlock()
	if mine && h.lost {
		return nil
	}
	err := c.retry(ctx, name, func(ctx context.Context) error {
		if !mine {
			_, _, err := c.readName(ctx, name)
			return err
		}
		return c.remove(ctx, name, h.nonce)
	})
	if err != nil && mine {
		c.doubtful(name, h.nonce)
	}
	return err
}

// remove removes the record of a name, if it has the nonce.
func (c *Cluster) remove(ctx context.Context, name string, nonce uint64) error {
	is, revision, err := c.readName(ctx, name)
	if err != nil || is == nil || is.GetNonce() != nonce {
		return err
	}
	return c.records.remove(ctx, revision)
}

// doubtful notes a record to remove when the store answers.
func (c *Cluster) doubtful(name string, nonce uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.doubts) < maxDoubts {
		c.doubts[name] = &doubt{nonce, c.now()}
	}
}

// Find implements cluster.Cluster.
func (c *Cluster) Find(ctx context.Context, name string) (found cluster.Holder, err error) {
	err = c.retry(ctx, name, func(ctx context.Context) error {
		is, revision, err := c.readName(ctx, name)
		if err != nil {
			return err
		}
		if is == nil {
			return cluster.ErrGone
		}
		c.mu.Lock()
		base, own := c.store.base, c.held[name]
		c.mu.Unlock()
		found = cluster.Holder{Server: is.GetHolder(), Epoch: cluster.Epoch(base + revision)}
		if is.GetEpoch() > 0 {
			found.Epoch = cluster.Epoch(is.GetEpoch())
		}
		if found.Server == c.id && (own == nil || own.lost) {
			return cluster.ErrGone // It will be removed.
		}
		if found.Server == c.id {
			return nil
		}
		free, err := c.free(ctx, is)
		if err == nil && free {
			err = cluster.ErrGone
		}
		return err
	})
	return found, err
}

// tidyNames does the work on names that waits for the store, after each heartbeat until Close.
func (c *Cluster) tidyNames() {
	for c.wait(c.tidy) {
		c.mu.Lock()
		now, term := c.now(), c.lease.term
		may := c.validLocked(now)
		again := map[string]*hold{}
		for name, h := range c.held {
			if !h.lost && (h.term != term || now-h.written >= renewAfter) {
				again[name] = h
			}
		}
		doubts := map[string]*doubt{}
		for name, d := range c.doubts {
			if c.held[name] == nil {
				doubts[name] = d
			}
		}
		c.mu.Unlock()
		if !may {
			continue
		}
		each(again, func(name string, h *hold) { c.claimAgain(name, h, term) })
		each(doubts, func(name string, d *doubt) { c.resolve(name, d) })
		c.mu.Lock()
		c.lease.claimed = c.lease.term == term
		for _, h := range c.held {
			c.lease.claimed = c.lease.claimed && (h.lost || h.term == term)
		}
		c.mu.Unlock()
	}
}

// each calls fn with the entries of a map, some at once.
func each[V any](all map[string]V, fn func(string, V)) {
	var group sync.WaitGroup
	free := make(chan struct{}, atOnce)
	for name, v := range all {
		free <- struct{}{}
		group.Go(func() { fn(name, v); <-free })
	}
	group.Wait()
}

// claimAgain writes the record of a held name with a new term or a new age, and the old epoch. A
// name that is not there was claimed by another server that has ended since, unless the store
// itself is newer than the claim.
func (c *Cluster) claimAgain(name string, h *hold, term uint64) {
	ctx, cancel := context.WithTimeout(c.ctx, storeTry*c.cfg.Beat)
	defer cancel()
	is, expected, err := c.readName(ctx, name)
	if err != nil {
		return
	}
	c.mu.Lock()
	sent, lost := c.now(), is != nil && is.GetNonce() != h.nonce || is == nil && c.store.base <= uint64(h.epoch)
	mine := c.held[name] == h
	h.lost = lost && mine
	c.mu.Unlock()
	if lost || !mine {
		if lost && mine && c.self.Lost != nil {
			c.self.Lost(name, h.epoch)
		}
		return
	}
	record := &clusterv1.Name{Name: name, Holder: c.id, Term: term, Nonce: h.nonce, Epoch: uint64(h.epoch)}
	revision, err := c.records.put(ctx, "name."+hashOf(name), encode(record), expected, recordTTL)
	if err != nil {
		return // The next heartbeat tries again.
	}
	c.mu.Lock()
	h.revision, h.term, h.written = revision, term, sent
	released := c.held[name] != h
	c.mu.Unlock()
	if released {
		c.doubtful(name, h.nonce)
	}
}

// resolve removes a record that no room uses, and forgets the doubt when none can arrive any more.
func (c *Cluster) resolve(name string, d *doubt) {
	ctx, cancel := context.WithTimeout(c.ctx, storeTry*c.cfg.Beat)
	defer cancel()
	if c.remove(ctx, name, d.nonce) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now()-d.since >= doubtBeats*c.cfg.Beat && c.doubts[name] == d {
		delete(c.doubts, name)
	}
}
