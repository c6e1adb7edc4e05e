// Package schema holds the contract between a server and its clients: the classes of replicated
// objects and the methods of messages, by name. Package netloop fills a [Schema] by its
// declarations; a room and a client read it.
//
//	schema.go     the declarations, their order and their fingerprint
//	method.go     a method: an RPC or a call
//	input.go      the input of clients for each fixed step
//	message.go    the encoding of messages of one type
//	proto.go      the same for protobuf messages in replicated state
//	decode.go     every decoder of messages, on both sides
//	tables.go     a schema as sent to the other side
//	forms.go      the messages of a schema as JSON, for forms of a page
//	typescript.go a schema as types and a value of TypeScript, for pages
//	adapt.go      a client's schema matched with that of a server of another build
package schema

import (
	"crypto/sha256"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/transport"
)

const (
	// MaxName limits the names sent in the handshake, in bytes.
	MaxName = 64
	// maxDeclarations limits the classes and methods of a schema, and so the memory of a client for
	// a server's tables. The tables of a real game reach transport.MaxTables long before.
	maxDeclarations = 1 << 13
)

// Schema is a set of declarations. It may be changed until it is frozen; after that any
// goroutine may read it.
type Schema struct {
	Name         string
	Major, Minor int

	classes []*state.Class
	// predicted lists the classes with objects that clients may predict.
	predicted []*state.Class

	methods []*Method
	input   *Input
	names   map[string]bool // "class x", "method x": taken

	once        sync.Once
	frozen      bool
	table       *state.Table
	rpcs        *rpcqueue.Table
	fingerprint [sha256.Size]byte
	frames      []byte // the tables, for a client with another fingerprint
}

// New makes an empty schema.
func New(name string, major, minor int) *Schema {
	if name == "" || major < 0 || minor < 0 {
		panic(fmt.Sprintf("netloop: NewSchema(%q, %d, %d): it needs a name, and versions of 0 or more", name, major, minor))
	}
	return &Schema{Name: name, Major: major, Minor: minor, names: map[string]bool{}}
}

// Claim reserves a name for a declaration. It panics if the name is invalid or taken, or the schema
// is in use: declarations are package variables, so the program fails when it starts.
func (s *Schema) Claim(kind, name string) {
	switch key := kind + " " + name; {
	case s.frozen:
		panic(fmt.Sprintf("netloop: %s %q is declared after schema %q was first used: declare it as a package variable", kind, name, s.Name))
	case name == "" || len(name) > MaxName:
		panic(fmt.Sprintf("netloop: a %s of schema %q needs a name of 1 to %d bytes, not %q", kind, s.Name, MaxName, name))
	case len(s.names) >= maxDeclarations:
		panic(fmt.Sprintf("netloop: schema %q has more than %d classes and methods", s.Name, maxDeclarations))
	case s.names[key]:
		panic(fmt.Sprintf("netloop: %s %q is declared twice in schema %q", kind, name, s.Name))
	default:
		s.names[key] = true
	}
}

// AddClass appends a class with a claimed name.
func (s *Schema) AddClass(c *state.Class, predicted bool) {
	s.classes = append(s.classes, c)
	if predicted {
		s.predicted = append(s.predicted, c)
	}
}

// AddMethod appends a method with a claimed name.
func (s *Schema) AddMethod(m *Method) { s.methods = append(s.methods, m) }

// Freeze assigns every declaration its index in the tables. The first server or client that uses
// the schema calls it.
func (s *Schema) Freeze() {
	s.once.Do(func() {
		s.frozen = true
		s.table = state.NewTable(s.classes...)
		methods := make([]*rpcqueue.Method, len(s.methods))
		for i, m := range s.methods {
			m.Queue.ID = uint32(i) + 1 // 0 names no method on the wire.
			methods[i] = &m.Queue
		}
		table, err := rpcqueue.NewTable(methods...)
		if err != nil {
			// Every cause was checked when it was declared.
			panic(fmt.Sprintf("netloop: schema %q: %v", s.Name, err))
		}
		s.rpcs = table
		h := sha256.New()
		s.describe(h)
		h.Sum(s.fingerprint[:0])
		if s.frames, err = transport.AppendTables(nil, s.tables()); err != nil {
			panic(fmt.Sprintf("netloop: schema %q is too large for clients of another build: %v", s.Name, err))
		}
	})
}

// describe writes the canonical text, the input of the fingerprint.
func (s *Schema) describe(w io.Writer) {
	fmt.Fprintf(w, "schema %q %d\n", s.Name, s.Major)
	for _, c := range s.classes {
		fmt.Fprintf(w, "class %q\n", c.Name())
		for _, f := range c.Describe() {
			fmt.Fprintf(w, "\t%q %s\n", f.Name, f.Type)
		}
	}
	for _, m := range s.methods {
		fmt.Fprintf(w, "method %q %s %s %v\n", m.Queue.Name, m.kind(), m.signature(), m.Queue.Stages)
	}
	if s.input != nil {
		fmt.Fprintf(w, "input %s\n", s.input.codec.signature())
	}
}

// Classes returns the table of all classes; nil before the schema is frozen.
func (s *Schema) Classes() *state.Table { return s.table }

// RPCs returns the table of all methods for a queue; nil before the schema is frozen.
func (s *Schema) RPCs() *rpcqueue.Table { return s.rpcs }

// Fingerprint returns the hash of all declarations: builds with equal ones have one layout.
func (s *Schema) Fingerprint() []byte { return s.fingerprint[:] }

// AllClasses returns the classes in the order of their declarations.
func (s *Schema) AllClasses() []*state.Class { return s.classes }

// AllMethods returns the methods in the order of their declarations.
func (s *Schema) AllMethods() []*Method { return s.methods }

// MethodNamed returns the declaration with a name.
func (s *Schema) MethodNamed(name string) (*Method, bool) {
	i := slices.IndexFunc(s.methods, func(m *Method) bool { return m.Queue.Name == name })
	if i < 0 {
		return nil, false
	}
	return s.methods[i], true
}

// Method returns the declaration of a wire id.
func (s *Schema) Method(id uint32) (*Method, bool) {
	if id == 0 || uint64(id) > uint64(len(s.methods)) {
		return nil, false
	}
	return s.methods[id-1], true
}
