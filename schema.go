package netloop

import (
	"crypto/sha256"
	"fmt"
	"io"
	"sync"

	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/transport"
)

// Schema is what a server and its clients must agree on: classes of replicated
// objects and messages, by name. It is filled by package-level declarations and
// frozen when the first server or client uses it; a declaration that comes later
// panics, and so does a bad one, as regexp.MustCompile does.
//
// Server and client may be of different builds of a game. Classes, methods and
// fields are matched by their names; a client without something ignores it, a
// field that only the client has keeps its zero value, and a method that only the
// client has cannot be sent. What both have must be of one type. A class or method
// keeps its name when the Go variable is renamed, and a field with the tag name=:
//
//	Velocity Vec `net:"name=Speed"` // older builds know it as Speed
//
// A Schema may be shared by any number of servers and clients of a process.
type Schema struct {
	name         string
	major, minor int

	classes []*class
	methods []*method
	names   map[string]bool // "class x", "method x": taken

	once        sync.Once
	frozen      bool
	table       *netvar.Table
	rpcs        *rpcqueue.Table
	fingerprint [sha256.Size]byte
	frames      []byte // the tables, as a client with another fingerprint is told them
}

// NewSchema makes an empty schema. Servers refuse clients with another major
// version: raise it when the meaning of something changes that keeps its name. The
// smaller of both minor versions is in force, see [Join] and the client's Minor.
func NewSchema(name string, major, minor int) *Schema {
	if name == "" || major < 0 || minor < 0 {
		panic(fmt.Sprintf("netloop: NewSchema(%q, %d, %d): it needs a name, and versions of 0 or more", name, major, minor))
	}
	return &Schema{name: name, major: major, minor: minor, names: map[string]bool{}}
}

// Name returns the name that the schema was made with.
func (s *Schema) Name() string { return s.name }

// claim reserves a name for a declaration.
func (s *Schema) claim(kind, name string) {
	switch key := kind + " " + name; {
	case s.frozen:
		panic(fmt.Sprintf("netloop: %s %q is declared after schema %q was first used: declare it as a package variable", kind, name, s.name))
	case name == "" || len(name) > maxName:
		panic(fmt.Sprintf("netloop: a %s of schema %q needs a name of 1 to %d bytes, not %q", kind, s.name, maxName, name))
	case len(s.names) >= maxDeclarations:
		panic(fmt.Sprintf("netloop: schema %q has more than %d classes and methods", s.name, maxDeclarations))
	case s.names[key]:
		panic(fmt.Sprintf("netloop: %s %q is declared twice in schema %q", kind, name, s.name))
	default:
		s.names[key] = true
	}
}

const (
	// maxName bounds the names that travel in the handshake, in bytes.
	maxName = 64
	// maxDeclarations bounds the classes and methods of a schema: what a client makes
	// room for when a server tells it of others. The tables of so many are too large.
	maxDeclarations = 1 << 13
)

// freeze gives every declaration its place in the tables. The first server or
// client that uses the schema calls it.
func (s *Schema) freeze() {
	s.once.Do(func() {
		s.frozen = true
		classes := make([]*netvar.Class, len(s.classes))
		for i, c := range s.classes {
			classes[i] = c.nv
		}
		s.table = netvar.NewTable(classes...)
		methods := make([]*rpcqueue.Method, len(s.methods))
		for i, m := range s.methods {
			m.rq.ID = uint32(i) + 1 // 0 names no method on the wire.
			methods[i] = &m.rq
		}
		table, err := rpcqueue.NewTable(methods...)
		if err != nil {
			panic(fmt.Sprintf("netloop: schema %q: %v", s.name, err)) // Every cause was checked when it was declared.
		}
		s.rpcs = table
		h := sha256.New()
		s.describe(h)
		h.Sum(s.fingerprint[:0])
		if s.frames, err = transport.AppendTables(nil, s.tables()); err != nil {
			panic(fmt.Sprintf("netloop: schema %q is too large for clients of another build: %v", s.name, err))
		}
	})
}

// describe writes the canonical text that the fingerprint is made of.
func (s *Schema) describe(w io.Writer) {
	fmt.Fprintf(w, "schema %q %d\n", s.name, s.major)
	for _, c := range s.classes {
		fmt.Fprintf(w, "class %q\n", c.nv.Name())
		for _, f := range c.nv.Describe() {
			fmt.Fprintf(w, "\t%q %s\n", f.Name, f.Type)
		}
	}
	for _, m := range s.methods {
		fmt.Fprintf(w, "method %q %s %s %v\n", m.rq.Name, m.kind(), m.signature(), m.rq.Stages)
	}
}

// method returns the declaration behind a wire id.
func (s *Schema) method(id uint32) (*method, bool) {
	if id == 0 || uint64(id) > uint64(len(s.methods)) {
		return nil, false
	}
	return s.methods[id-1], true
}
