package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// These checks are for implementations: all of them refuse the same values.

// Check returns an error that names the first field beyond the limits.
func (s Server) Check() error {
	switch {
	case !validID(s.ID):
		return fmt.Errorf("cluster: Server.ID %q: use 1 to 64 letters, digits, - and _", s.ID)
	case len(s.Addresses) > MaxAddresses:
		return fmt.Errorf("cluster: Server.Addresses: %d addresses: use at most %d", len(s.Addresses), MaxAddresses)
	case !texts(s.Region, s.Zone, s.Schema):
		return fmt.Errorf("cluster: Server.Region, Zone and Schema: use at most %d bytes of UTF-8 each", MaxText)
	}
	for _, a := range s.Addresses {
		if err := a.check(); err != nil {
			return err
		}
	}
	return nil
}

// maxHashes is the limit of certificates of an address: the present and the next one, of two
// kinds.
const maxHashes = 4

func (a Address) check() error {
	if !texts(a.Carrier, a.Addr, a.Name) || len(a.Hashes) > maxHashes {
		return fmt.Errorf("cluster: Server.Addresses: use at most %d bytes of UTF-8 for each text, and %d hashes", MaxText, maxHashes)
	}
	for _, h := range a.Hashes {
		if len(h) != 32 {
			return fmt.Errorf("cluster: Server.Addresses: a hash of %d bytes: use a SHA-256, 32 bytes", len(h))
		}
	}
	return nil
}

// texts reports whether all texts are within the limits.
func texts(all ...string) bool {
	for _, t := range all {
		if len(t) > MaxText || !utf8.ValidString(t) {
			return false
		}
	}
	return true
}

// validID reports whether an id can be part of a subject of NATS.
func validID(id string) bool {
	return id != "" && len(id) <= 64 && strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == ""
}

// CheckName returns an error for a name beyond the limits.
func CheckName(name string) error {
	if name == "" || len(name) > MaxName || !utf8.ValidString(name) {
		return fmt.Errorf("cluster: a name of %d bytes: use 1 to %d of UTF-8", len(name), MaxName)
	}
	return nil
}

// Complete returns the call with its defaults, or an error for a field beyond the limits.
func (c Call) Complete(newID func() string) (Call, error) {
	c.Timeout = cmp.Or(c.Timeout, StoreTime)
	if c.ID == "" {
		c.ID = newID()
	}
	switch {
	case c.Timeout < 0 || c.Timeout > MaxCallTime:
		return c, fmt.Errorf("cluster: Call.Timeout %v: use 0 for %v, up to %v", c.Timeout, StoreTime, MaxCallTime)
	case len(c.Body) > MaxBody:
		return c, fmt.Errorf("cluster: Call.Body of %d bytes: use at most %d", len(c.Body), MaxBody)
	case !texts(c.ID, c.Method):
		return c, fmt.Errorf("cluster: Call.ID and Method: use at most %d bytes of UTF-8 each", MaxText)
	}
	return c, nil
}

// Outcome returns an answer as another server gets it: an error of the cluster as itself, any
// other one as its text.
func Outcome(body []byte, err error) ([]byte, error) {
	if err == nil && len(body) > MaxBody {
		err = fmt.Errorf("cluster: an answer of %d bytes: use at most %d", len(body), MaxBody)
	}
	for _, known := range []error{ErrBusy, ErrTaken, ErrGone} {
		if errors.Is(err, known) {
			return nil, known
		}
	}
	if err != nil {
		text := err.Error()
		return nil, errors.New(strings.ToValidUTF8(text[:min(len(text), MaxText)], ""))
	}
	return body, nil
}

// beats returns the time of n heartbeats.
func beats(n int) time.Duration { return time.Duration(n) * Beat }
