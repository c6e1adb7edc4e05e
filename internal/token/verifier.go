package token

import (
	"sync/atomic"
	"time"
)

// Verifier is what a server knows of tokens. Its methods may be called from any goroutine.
type Verifier struct {
	path     string
	audience string
	keys     atomic.Pointer[Keys]
	spent    spent
	counts   [numReasons]atomic.Uint64
	loaded   atomic.Uint64
	failed   atomic.Uint64
}

// NewVerifier reads the keys of a file or folder, see LoadKeys, for a server whose tokens name it
// by an audience.
func NewVerifier(path, audience string) (*Verifier, error) {
	keys, err := LoadKeys(path)
	if err != nil {
		return nil, err
	}
	v := &Verifier{path: path, audience: audience}
	v.keys.Store(keys)
	return v, nil
}

// Reload reads the keys again. If that fails, those from before stay.
func (v *Verifier) Reload() error {
	keys, err := LoadKeys(v.path)
	if err != nil {
		v.failed.Add(1)
		return err
	}
	v.keys.Store(keys)
	v.loaded.Add(1)
	return nil
}

// Keys returns the keys that count now.
func (v *Verifier) Keys() *Keys { return v.keys.Load() }

// Verify says who somebody is that brings a token to a room, and uses the token up. Its error is
// an *Error.
func (v *Verifier) Verify(text, room string, now time.Time) (*Identity, error) {
	who, err := v.verify(text, room, now)
	if err != nil {
		v.counts[err.Reason].Add(1)
		return nil, err
	}
	v.counts[Fine].Add(1)
	return who, nil
}

func (v *Verifier) verify(text, room string, now time.Time) (*Identity, *Error) {
	e := examine(text, Want{Keys: v.keys.Load(), Audience: v.audience, Room: room, Now: now})
	if err := e.wrong(); err != nil {
		return nil, err
	}
	switch v.spent.use(e.who.id, e.who.until, now) {
	case usedBefore:
		return nil, &Error{Spent, "the token was used before, and each is for one join: get a new one"}
	case noMemory:
		return nil, &Error{Busy, "the server remembers as many tokens as it can: try again later"}
	case used:
	}
	return &e.who, nil
}

// Outcomes calls each with what became of tokens, by name and number.
func (v *Verifier) Outcomes(each func(outcome string, n uint64)) {
	for r := range v.counts {
		each(reasonNames[r], v.counts[r].Load())
	}
}

// Reloads returns how often the keys were read again, and how often that failed.
func (v *Verifier) Reloads() (loaded, failed uint64) { return v.loaded.Load(), v.failed.Load() }

// Remembered returns how many ids of tokens are remembered.
func (v *Verifier) Remembered() int { return v.spent.size() }
