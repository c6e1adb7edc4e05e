package token

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// maxKeys limits the keys of a folder. A folder has one key for each login service, and two
	// while a service changes its key.
	maxKeys = 256
	// maxKeyFile limits the bytes read of a file: a key takes 113 bytes.
	maxKeyFile = 16 << 10
)

// Keys holds the public keys of the signers of tokens. The kid in a token's header selects the key.
// Keys are immutable.
type Keys struct{ byID map[string]ed25519.PublicKey }

// IDs returns the names of the keys, sorted.
func (k *Keys) IDs() []string { return slices.Sorted(maps.Keys(k.byID)) }

// equal reports whether both hold the same keys under the same names.
func (k *Keys) equal(other *Keys) bool {
	return maps.EqualFunc(k.byID, other.byID, func(a, b ed25519.PublicKey) bool { return a.Equal(b) })
}

// find returns the key of a header's kid. A header without kid selects the key if there is only
// one.
func (k *Keys) find(id string) (ed25519.PublicKey, bool) {
	if id == "" && len(k.byID) == 1 {
		for _, key := range k.byID {
			return key, true
		}
	}
	key, ok := k.byID[id]
	return key, ok
}

// LoadKeys reads a file with a public key in PEM, or a folder with one in each file *.pub and
// *.pem; other files there are ignored. The name of a key is its file's name without the extension.
func LoadKeys(path string) (*Keys, error) {
	files, err := keyFiles(path)
	if err != nil {
		return nil, err
	}
	k := &Keys{byID: make(map[string]ed25519.PublicKey, len(files))}
	for _, file := range files {
		key, err := readPublic(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		id := keyID(file)
		if _, taken := k.byID[id]; taken {
			return nil, fmt.Errorf("%s: another file has the name %q too: rename one", file, id)
		}
		k.byID[id] = key
	}
	return k, nil
}

// keyFiles returns the key files of a folder, or the path itself if it is a file.
func keyFiles(path string) ([]string, error) {
	entries, err := os.ReadDir(path)
	if err != nil { // The path is a file, or opening it returns the error.
		return []string{path}, nil
	}
	var files []string
	for _, e := range entries { // Folders, as in a volume of Kubernetes, have no such extension.
		if ext := filepath.Ext(e.Name()); ext == ".pub" || ext == ".pem" {
			files = append(files, filepath.Join(path, e.Name()))
		}
	}
	switch {
	case len(files) == 0:
		return nil, fmt.Errorf("%s: folder has no .pub or .pem file: add the public keys", path)
	case len(files) > maxKeys:
		return nil, fmt.Errorf("%s: folder has %d keys, more than %d", path, len(files), maxKeys)
	}
	return files, nil
}

// keyID returns the name of a key: its file's name without the extension.
func keyID(file string) string {
	base := filepath.Base(file)
	return strings.TrimSuffix(base, filepath.Ext(base))
}

var errNotEd25519 = errors.New("key is not Ed25519: make one with the command token keygen")

func readPublic(file string) (ed25519.PublicKey, error) {
	return readKey[ed25519.PublicKey](file, "PUBLIC KEY", x509.ParsePKIXPublicKey,
		"key is private and belongs to the login service: use the public key, and make new keys if others have read this one")
}

// readKey reads a file with one key of a kind, which is its PEM type. other is the error for a key
// of the other kind.
func readKey[K any](file, kind string, parse func([]byte) (any, error), other string) (key K, err error) {
	block, err := readPEM(file)
	if err != nil {
		return key, err
	}
	switch block.Type {
	case kind:
	case "PUBLIC KEY", "PRIVATE KEY":
		return key, errors.New(other)
	default:
		return key, fmt.Errorf("file has a %q, not a %s", block.Type, kind)
	}
	parsed, err := parse(block.Bytes)
	if err != nil {
		return key, fmt.Errorf("key is damaged: %w", err)
	}
	key, ok := parsed.(K)
	if !ok {
		return key, errNotEd25519
	}
	return key, nil
}

// readPEM reads a file with exactly one PEM block.
func readPEM(file string) (*pem.Block, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, errors.Unwrap(err) // Callers name the file.
	}
	defer func() { _ = f.Close() }() // The file was only read.
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFile))
	if err != nil {
		return nil, err
	}
	block, rest := pem.Decode(text)
	switch {
	case block == nil:
		return nil, errors.New("file has no PEM key: it begins with -----BEGIN")
	case strings.TrimSpace(string(rest)) != "":
		return nil, errors.New("file has more than one key: use one file per key, in one folder")
	}
	return block, nil
}
