package app

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"github.com/netloop/netloop"
)

// addresses is the content of --addr-file.
type addresses struct {
	Listen   string `json:"listen"`
	Admin    string `json:"admin"` // "" without an admin listener
	Web      string `json:"web"`   // "" without pages
	CertHash string `json:"cert_hash"`
	Server   string `json:"server,omitempty"`  // id in the cluster
	Cluster  string `json:"cluster,omitempty"` // URL of NATS, without a password
}

func addressesOf(s *netloop.Server, o *options) addresses {
	hash := s.CertHash()
	at := addresses{Listen: bound(s.Addr(), o.Listen), CertHash: hex.EncodeToString(hash[:])}
	if a := s.AdminAddr(); a != nil {
		at.Admin = bound(a, o.Admin)
	}
	if w := s.WebAddr(); w != nil {
		at.Web = bound(w, o.Web)
	}
	return at
}

// bound returns the address of a listener. If it listens on all addresses of this machine, bound
// keeps the requested host, because the system reports 0.0.0.0 as [::].
func bound(taken net.Addr, asked string) string {
	host, port, err := net.SplitHostPort(taken.String())
	if err == nil && everywhere(host) {
		host, _, err = net.SplitHostPort(asked)
	}
	if err != nil {
		return taken.String()
	}
	return net.JoinHostPort(host, port)
}

// everywhere reports whether a listener on host accepts on all addresses of this machine.
func everywhere(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}

// addrFile is the file of --addr-file. The file appears complete or not at all, because other
// programs wait for it. A nil addrFile has no effect.
type addrFile struct {
	path string
	temp *os.File
}

// newAddrFile removes the file of an earlier run, so that no program reads old addresses, and makes
// sure that the new file can be written.
func (c *configuration) newAddrFile() (*addrFile, error) {
	path := c.options.AddrFile
	if path == "" {
		return nil, nil
	}
	bad := func(err error) error {
		return c.bad("addr-file", path, "use a file in a writable folder: "+err.Error())
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, bad(errors.New("it is not a regular file"))
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, bad(err)
	}
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return nil, bad(err)
	}
	return &addrFile{path, temp}, nil
}

// publish writes the addresses to the temporary file and renames it to its final name.
func (f *addrFile) publish(at addresses) error {
	if f == nil {
		return nil
	}
	text, err := json.Marshal(at)
	if err != nil {
		return err
	}
	const readable = 0o644 // Other users' tools wait for the file; it holds no secret.
	_, err = f.temp.Write(append(text, '\n'))
	if err := errors.Join(err, f.temp.Chmod(readable), f.temp.Close()); err != nil {
		return err
	}
	return os.Rename(f.temp.Name(), f.path)
}

// discard removes the temporary file if publish did not rename it.
func (f *addrFile) discard() {
	if f != nil {
		_ = f.temp.Close()
		_ = os.Remove(f.temp.Name())
	}
}
