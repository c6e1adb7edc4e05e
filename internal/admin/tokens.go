package admin

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"

	"github.com/netloop/netloop/internal/watchfile"
)

// role is a level of access. Each role includes the previous roles.
type role uint8

const (
	anonymous role = iota // no known token
	reader                // may read all pages
	writer                // may also use actions, such as closing rooms, and profiles
)

// The limits of a file of tokens.
const (
	minToken  = 16 // characters: at least 64 bits if they are random
	maxTokens = 64
	maxFile   = 64 << 10
)

// Tokens are the tokens of a file, which is read again when it changes. Each line is a role, read
// or write, a token and, for the log, an optional name; lines that begin with # are comments.
type Tokens struct {
	path  string
	log   *slog.Logger
	known atomic.Pointer[[]knownToken]
	watch *watchfile.Watcher
}

// knownToken is one token. Only its hash is stored, because a comparison in constant time needs
// equal lengths.
type knownToken struct {
	role role
	hash [sha256.Size]byte
	name string // name in the file, or "line 3"
}

// OpenTokens reads a file of tokens. Close the result.
func OpenTokens(path string, log *slog.Logger) (*Tokens, error) {
	t := &Tokens{path: path, log: log}
	ready := make(chan struct{})
	t.watch = watchfile.Watch(func() { <-ready; t.reload() }, path)
	err := t.load()
	close(ready)
	if err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// Close stops watching the file.
func (t *Tokens) Close() { t.watch.Close() }

func (t *Tokens) load() error {
	text, err := os.ReadFile(t.path)
	if err != nil {
		return err
	}
	all, err := parseTokens(text)
	if err != nil {
		return err
	}
	t.known.Store(&all)
	return nil
}

func (t *Tokens) reload() {
	if t.known.Load() == nil {
		return // OpenTokens returns the error of the first load.
	}
	if err := t.load(); err != nil {
		t.log.Error("the file of admin tokens cannot be used, keeping the previous tokens", "error", err.Error())
		return
	}
	t.log.Info("the admin tokens were replaced", "tokens", len(*t.known.Load()))
}

// ReadToken returns the first token of a file, for a client of an admin listener; with write, the
// first token of role write.
func ReadToken(path string, write bool) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if _, err := parseTokens(text); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) >= 2 && (words[0] == "write" || words[0] == "read" && !write) {
			return words[1], nil
		}
	}
	return "", fmt.Errorf("%s: it has no token with the role write", path) // It has read tokens.
}

// parseTokens parses the lines of a file. Its errors contain line numbers but no tokens.
func parseTokens(text []byte) (all []knownToken, err error) {
	if len(text) > maxFile {
		return nil, fmt.Errorf("it has more than %d bytes", maxFile)
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		may := map[string]role{"read": reader, "write": writer}[words[0]]
		switch {
		case may == anonymous || len(words) < 2 || len(words) > 3:
			return nil, fmt.Errorf("line %d: write read or write, a space, a token, and if you like a space and a name", n)
		case len(words[1]) < minToken:
			return nil, fmt.Errorf("line %d: a token has at least %d characters: openssl rand -hex 32 makes one", n, minToken)
		}
		name := fmt.Sprintf("line %d", n)
		if len(words) == 3 {
			name = words[2]
		}
		all = append(all, knownToken{may, sha256.Sum256([]byte(words[1])), name})
	}
	switch {
	case lines.Err() != nil:
		return nil, lines.Err()
	case len(all) == 0:
		return nil, errors.New("it has no token: write read, a space, and what openssl rand -hex 32 prints")
	case len(all) > maxTokens:
		return nil, fmt.Errorf("it has more than %d tokens", maxTokens)
	}
	return all, nil
}

// find returns the role and the name of a token. It takes the same time for every token.
func (t *Tokens) find(token string) (found role, name string) {
	hash := sha256.Sum256([]byte(token))
	for _, k := range *t.known.Load() {
		same := subtle.ConstantTimeCompare(hash[:], k.hash[:])
		found = max(found, role(subtle.ConstantTimeSelect(same, int(k.role), int(anonymous))))
		if same == 1 {
			name = k.name // This copies a pointer: the time does not depend on the token.
		}
	}
	return found, name
}
