package app

import (
	"cmp"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// minSecret is the minimum length of a secret in bytes, and the length of the derived keys.
const minSecret = 32

// secret returns the secret from which the keys of this server are derived. It returns nil if
// neither a file nor a directory for it is set: then the server has new keys at each start.
func (c *configuration) secret(environ []string) ([]byte, error) {
	o := c.options
	if o.SecretFile != "" {
		secret, err := readSecret(o.SecretFile)
		if err != nil {
			return nil, c.bad("secret-file", o.SecretFile, err.Error())
		}
		// Many servers may have the same file, so the machine is included.
		machine, _ := os.Hostname()
		return ownSecret(secret, machine, o.Listen), nil
	}
	dir := o.stateDir(environ)
	if dir == "" {
		return nil, nil
	}
	secret, err := keptSecret(dir)
	if err != nil {
		return nil, c.bad("state-dir", dir, err.Error())
	}
	return ownSecret(secret, "", o.Listen), nil
}

// stateDir returns the directory for state that outlives the process: the option StateDir, or else
// the first directory in STATE_DIRECTORY, which systemd sets for StateDirectory=, or "".
func (o *options) stateDir(environ []string) string {
	first, _, _ := strings.Cut(variable(environ, "STATE_DIRECTORY"), ":")
	return cmp.Or(o.StateDir, first)
}

// variable returns the value of a variable of the environment; "" is none.
func variable(environ []string, name string) string {
	for _, pair := range environ {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			return value
		}
	}
	return ""
}

// ownSecret derives this server's secret from the secret in a file, the machine's name and the
// listen address, because two servers must not have the same secret.
func ownSecret(secret []byte, machine, listen string) []byte {
	own, err := hkdf.Key(sha256.New, secret, nil, "netloop server "+machine+" "+listen, minSecret)
	if err != nil {
		panic("app: " + err.Error()) // Only a length far above minSecret is an error.
	}
	return own
}

// readSecret reads a secret. The text of an error tells the operator what to change.
func readSecret(path string) ([]byte, error) {
	secret, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("name a readable file: %w", err)
	}
	if len(secret) < minSecret {
		return nil, fmt.Errorf("%s has %d bytes, fewer than %d: make it with head -c %d /dev/urandom", path, len(secret), minSecret, minSecret)
	}
	return secret, nil
}

// keptSecret reads the secret in a directory, and makes the directory and the secret if they do not
// exist. Only the server's user may read the secret: with it an attacker can end other people's
// connections.
func keptSecret(dir string) ([]byte, error) {
	if err := makeStateDir(dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "secret")
	if err := makeSecret(dir, path); err != nil {
		return nil, fmt.Errorf("use a writable directory: %w", err)
	}
	if exposed(path) {
		return nil, fmt.Errorf("others may read %s: chmod 600 it, or remove it for a new one", path)
	}
	return readSecret(path)
}

// makeStateDir makes the state directory, unless it exists.
func makeStateDir(dir string) error {
	const whoOwnsIt = 0o700
	if err := os.MkdirAll(dir, whoOwnsIt); err != nil {
		return fmt.Errorf("use a directory that can be created: %w", err)
	}
	return nil
}

// exposed reports whether other users than its owner may read or write a file.
func exposed(path string) bool {
	const others = 0o077
	info, err := os.Stat(path)
	const bits = runtime.GOOS != "windows" // Windows has no such bits.
	return err == nil && bits && info.Mode().Perm()&others != 0
}

// makeSecret makes the file, unless it exists. The file appears complete or not at all, and two
// servers that start at once read the same file.
func makeSecret(dir, path string) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	temp, err := os.CreateTemp(dir, ".secret.*") // No other user may read it.
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temp.Name()) }()
	secret := make([]byte, minSecret)
	_, _ = rand.Read(secret) // Never fails.
	_, err = temp.Write(secret)
	if err := errors.Join(err, temp.Sync(), temp.Close()); err != nil {
		return err
	}
	if err := os.Link(temp.Name(), path); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil // Another process was first.
}
