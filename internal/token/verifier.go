package token

import (
	"context"
	"encoding/hex"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// ErrUsed is the error of Verifier.Share for a token that another server has accepted.
var ErrUsed = errors.New("token was used at another server")

// Verifier verifies the tokens of a server. Its methods may be called from any goroutine.
type Verifier struct {
	// Share, if set, marks a token as used at all servers of a cluster, for the time until it
	// expires. id identifies the token in at most 40 letters and digits. After an error other than
	// ErrUsed the token is refused for now. Verify calls it, so that it may wait as long as Verify.
	Share func(ctx context.Context, id string, keep time.Duration) error

	path     string
	audience string
	keys     atomic.Pointer[Keys]
	spent    usedIDs
	counts   [numReasons]atomic.Uint64
	loaded   atomic.Uint64
	failed   atomic.Uint64

	reloading sync.Mutex
	failure   string // error of the last reload, under reloading
}

// NewVerifier reads the keys of a file or folder, see LoadKeys, for a server that accepts tokens of
// this audience.
func NewVerifier(path, audience string) (*Verifier, error) {
	keys, err := LoadKeys(path)
	if err != nil {
		return nil, err
	}
	v := &Verifier{path: path, audience: audience}
	v.keys.Store(keys)
	return v, nil
}

// Reload reads the keys again, and reports whether they have changed. If they cannot be read, the
// current keys are kept. A repeated failure is returned only once, because other files in the
// folder, such as a log, may change often.
func (v *Verifier) Reload() (changed bool, err error) {
	v.reloading.Lock()
	defer v.reloading.Unlock()
	keys, err := LoadKeys(v.path)
	if err != nil {
		if err.Error() == v.failure {
			return false, nil
		}
		v.failure = err.Error()
		v.failed.Add(1)
		return false, err
	}
	v.failure = ""
	if keys.equal(v.keys.Load()) {
		return false, nil
	}
	v.keys.Store(keys)
	v.loaded.Add(1)
	return true, nil
}

// Keys returns the current keys.
func (v *Verifier) Keys() *Keys { return v.keys.Load() }

// Verify returns the identity of the player with a token for a room, and marks the token as used.
// Its error is an *Error.
func (v *Verifier) Verify(ctx context.Context, text, room string, now time.Time) (*Identity, error) {
	who, err := v.verify(ctx, text, room, now)
	if err != nil {
		v.counts[err.Reason].Add(1)
		return nil, err
	}
	v.counts[Fine].Add(1)
	return who, nil
}

func (v *Verifier) verify(ctx context.Context, text, room string, now time.Time) (*Identity, *Error) {
	e := newVerification(text, Want{Keys: v.keys.Load(), Audience: v.audience, Room: room, Now: now})
	if err := e.wrong(); err != nil {
		return nil, err
	}
	if err := v.share(ctx, &e.who, now); err != nil {
		return nil, err
	}
	switch v.spent.use(e.who.id, e.who.until, now) {
	case usedBefore:
		return nil, errSpent
	case noMemory:
		return nil, &Error{Busy, "server has too many used tokens: try again later"}
	case used:
	}
	return &e.who, nil
}

var errSpent = &Error{Spent, "token was already used: get a new one"}

// share marks a token as used in the cluster, unless it was used at this server.
func (v *Verifier) share(ctx context.Context, who *Identity, now time.Time) *Error {
	if v.Share == nil || v.spent.has(who.id) {
		return nil
	}
	err := v.Share(ctx, hex.EncodeToString(who.id[:]), who.until.Sub(now))
	switch {
	case errors.Is(err, ErrUsed):
		return errSpent
	case err != nil:
		return &Error{Busy, err.Error()}
	}
	return nil
}

// Outcomes calls each once for every outcome, with the number of tokens that had it. An outcome is
// accepted, or the name of a [Reason].
func (v *Verifier) Outcomes(each func(outcome string, n uint64)) {
	for r := range v.counts {
		each(reasonNames[r], v.counts[r].Load())
	}
}

// Reloads returns the number of times that changed keys were loaded, and the number of times that
// the keys could not be read.
func (v *Verifier) Reloads() (loaded, failed uint64) { return v.loaded.Load(), v.failed.Load() }

// Remembered returns the number of stored ids.
func (v *Verifier) Remembered() int { return v.spent.size() }
