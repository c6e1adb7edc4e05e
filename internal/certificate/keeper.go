package certificate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/netloop/netloop/internal/watchfile"
)

// Keeper holds a certificate that may change. Any goroutine may use it.
type Keeper struct {
	kind           string
	log            *slog.Logger
	held           atomic.Pointer[held]
	loaded, failed atomic.Uint64

	watch   *watchfile.Watcher // nil without files
	done    chan struct{}
	once    sync.Once
	running sync.WaitGroup

	reloading sync.Mutex
	mu        sync.Mutex
	closed    bool        // under mu
	retry     *time.Timer // under mu: for a new certificate that is not valid yet
}

// held is one certificate.
type held struct {
	pair        *tls.Certificate
	hash        [sha256.Size]byte // hash of the first certificate of the chain
	from, until time.Time
}

func newKeeper(kind string, log *slog.Logger) *Keeper {
	return &Keeper{kind: kind, log: log, done: make(chan struct{})}
}

// Given returns a Keeper of the caller's own certificate.
func Given(pair tls.Certificate, log *slog.Logger) *Keeper {
	k := newKeeper("config", log)
	k.keep(pair)
	return k
}

// Files returns a Keeper of the certificate in two PEM files. Close it.
func Files(certFile, keyFile string, log *slog.Logger) (*Keeper, error) {
	k := newKeeper("files", log)
	load := func() (tls.Certificate, error) { return tls.LoadX509KeyPair(certFile, keyFile) }
	ready := make(chan struct{}) // Closed after the first load; the watcher then loads changes.
	k.watch = watchfile.Watch(func() { <-ready; k.reload(load) }, certFile, keyFile)
	pair, err := load()
	if err == nil {
		k.keep(pair)
	}
	close(ready)
	if err != nil {
		k.Close()
		return nil, err
	}
	if err := k.held.Load().outdated(time.Now()); err != nil {
		log.Warn("clients refuse the certificate, except those that pin its hash", "file", certFile, "because", err.Error())
	}
	return k, nil
}

// reload replaces the certificate by the certificate in the files, unless the old one is valid now
// and the new one is not. If the new one is not valid yet, the files are loaded again when it
// becomes valid.
func (k *Keeper) reload(load func() (tls.Certificate, error)) { k.replace(load, true) }

func (k *Keeper) replace(load func() (tls.Certificate, error), says bool) {
	k.reloading.Lock()
	defer k.reloading.Unlock()
	old := k.held.Load()
	if old == nil {
		return // The first load failed, and Files returned its error.
	}
	pair, err := load()
	if err == nil {
		next, now := newHeld(pair), time.Now()
		if err = next.replaces(old, now); err != nil && now.Before(next.from) {
			k.tryAt(next.from, load)
		}
	}
	if err != nil {
		if says {
			k.refuse(err)
		}
		return
	}
	k.keep(pair)
	k.loaded.Add(1)
	k.log.Info("the certificate was replaced", "cert_hash", k.hexHash(), "valid_until", k.Until().UTC().Format(time.DateTime))
}

// tryAt loads the files again at the time at. Until then it also tries every renewCheck, because a
// timer is late after the machine has slept.
func (k *Keeper) tryAt(at time.Time, load func() (tls.Certificate, error)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return
	}
	k.stopRetryLocked()
	k.running.Add(1)
	k.retry = time.AfterFunc(min(max(time.Until(at), time.Second), renewCheck), func() {
		defer k.running.Done()
		k.replace(load, false)
	})
}

func (k *Keeper) stopRetryLocked() {
	if k.retry != nil && k.retry.Stop() {
		k.running.Done()
	}
}

// refuse logs and counts a new certificate that cannot be used.
func (k *Keeper) refuse(err error) {
	k.failed.Add(1)
	k.log.Error("the new certificate cannot be used, keeping the previous one", "error", err.Error(), "old_valid_until", k.Until().UTC().Format(time.DateTime))
}

func (k *Keeper) keep(pair tls.Certificate) { k.held.Store(newHeld(pair)) }

func newHeld(pair tls.Certificate) *held {
	h := &held{pair: &pair}
	if len(pair.Certificate) == 0 {
		return h
	}
	h.hash = sha256.Sum256(pair.Certificate[0])
	pair.Leaf, _ = x509.ParseCertificate(pair.Certificate[0]) // TLS reports the error.
	if pair.Leaf != nil {
		h.from, h.until = pair.Leaf.NotBefore, pair.Leaf.NotAfter
	}
	return h
}

// outdated returns an error if the certificate is not valid now.
func (h *held) outdated(now time.Time) error {
	switch {
	case h.until.IsZero(): // Unknown dates.
		return nil
	case now.After(h.until):
		return errors.New("it has expired on " + h.until.UTC().Format(time.DateTime) + ": renew it")
	case now.Before(h.from):
		return errors.New("it is not valid before " + h.from.UTC().Format(time.DateTime) + ": check this machine's clock")
	}
	return nil
}

// replaces returns an error if old is valid now and this certificate is not: then it must not
// replace old.
func (h *held) replaces(old *held, now time.Time) error {
	if err := h.outdated(now); err != nil && old.outdated(now) == nil {
		return fmt.Errorf("the previous one is still valid, the new one is not: %w", err)
	}
	return nil
}

// Get is the GetCertificate of a tls.Config.
func (k *Keeper) Get(*tls.ClientHelloInfo) (*tls.Certificate, error) { return k.held.Load().pair, nil }

// Hash returns the SHA-256 of the certificate, with which clients may pin it.
func (k *Keeper) Hash() [sha256.Size]byte { return k.held.Load().hash }

func (k *Keeper) hexHash() string { h := k.Hash(); return hex.EncodeToString(h[:]) }

// Until returns the end of the certificate's validity; zero if unknown.
func (k *Keeper) Until() time.Time { return k.held.Load().until }

// Left returns the time until the certificate's validity ends, negative after the end, and whether
// the end is known.
func (k *Keeper) Left() (left time.Duration, known bool) {
	until := k.Until()
	return time.Until(until), !until.IsZero()
}

// Pinnable reports whether a browser accepts this certificate only by its hash: it requires a P-256
// key and a short validity (W3C, WebTransport, "custom certificate requirements").
func (k *Keeper) Pinnable() bool {
	h := k.held.Load()
	if h == nil || h.pair.Leaf == nil {
		return false
	}
	key, ok := h.pair.Leaf.PublicKey.(*ecdsa.PublicKey)
	return ok && key.Curve == elliptic.P256() && h.until.Sub(h.from) <= pinnableLife
}

// pinnableLife is the longest validity of a certificate that browsers accept by its hash.
const pinnableLife = 14 * 24 * time.Hour

// Kind returns the source of the certificate: files, development or config.
func (k *Keeper) Kind() string { return k.kind }

// Counts returns the number of replacements of the certificate, and of failed attempts.
func (k *Keeper) Counts() (loaded, failed uint64) { return k.loaded.Load(), k.failed.Load() }

// Close stops the renewal of the certificate. It may be called again.
func (k *Keeper) Close() {
	k.once.Do(func() { close(k.done) })
	k.mu.Lock()
	k.closed = true
	k.stopRetryLocked()
	k.retry = nil
	k.mu.Unlock()
	if k.watch != nil {
		k.watch.Close()
	}
	k.running.Wait()
}
