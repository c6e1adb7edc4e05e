package membership

import (
	"crypto/sha256"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/netloop/netloop/cluster"
	clusterv1 "github.com/netloop/netloop/proto/netloop/cluster/v1"
)

// FirstNumber is the least number of a room of another server. Rooms of this server have smaller
// ones.
const FirstNumber = 1 << 62

// rooms is the copy of the boards of other servers.
type rooms struct {
	mu      sync.Mutex
	servers map[string]*board // by the ids of the servers
	where   map[string]string // server ids by the names of rooms
	codes   map[string]string // names of private rooms by the digests of their codes
	number  uint64            // number of rooms so far
}

// board is the copy of one server's board.
type board struct {
	version uint64
	suspect bool              // its rooms are not listed
	rooms   map[string]*known // by name
	order   []*known          // its rooms in the order of the board
}

// known is a room of another server.
type known struct {
	name   string
	number uint64
	data   []byte // as announced
	code   string // digest of the room's code; empty: none
}

// Change is a new or changed room of another server. Entry is nil for a room that has ended, or
// whose server is suspect.
type Change struct {
	Number uint64 // the same for each change of a room
	Server string
	Room   string
	Entry  *clusterv1.Entry
}

// Sync calls fn with the changes of the boards of other servers since the last call. Malformed
// entries are dropped. One goroutine at a time calls it.
func (m *Member) Sync(fn func(Change)) {
	if !m.joined.Load() {
		return
	}
	boards := m.cfg.Via.Boards()
	m.rooms.mu.Lock()
	defer m.rooms.mu.Unlock()
	present := make(map[string]bool, len(boards))
	for i := range boards {
		if b := &boards[i]; b.Server != m.self.ID {
			present[b.Server] = true
			m.rooms.updateLocked(b, fn)
		}
	}
	for id, b := range m.rooms.servers {
		if !present[id] {
			m.rooms.dropLocked(id, b, fn)
		}
	}
}

// updateLocked copies one server's board.
func (r *rooms) updateLocked(b *cluster.Board, fn func(Change)) {
	own := r.servers[b.Server]
	switch {
	case own == nil:
		own = &board{rooms: map[string]*known{}}
		if r.servers == nil {
			r.servers, r.where, r.codes = map[string]*board{}, map[string]string{}, map[string]string{}
		}
		r.servers[b.Server] = own
	case own.version == b.Version && own.suspect == b.Suspect:
		return
	}
	again := own.suspect != b.Suspect // All of its rooms are listed no longer, or again.
	own.version, own.suspect = b.Version, b.Suspect
	if own.hasRooms(b.Rooms) {
		for i, room := range b.Rooms {
			if k := own.order[i]; again || !sameBytes(k.data, room.Entry) {
				if entry := decodeEntry(room.Entry); entry != nil {
					r.setLocked(b, k, room.Entry, entry, fn)
				} else {
					r.removeLocked(b.Server, own, room.Name, k, fn)
				}
			}
		}
		return
	}
	kept := make(map[string]bool, len(b.Rooms))
	own.order = own.order[:0]
	for _, room := range b.Rooms {
		k := own.rooms[room.Name]
		if k == nil || again || !sameBytes(k.data, room.Entry) {
			entry := decodeEntry(room.Entry)
			if entry == nil {
				continue
			}
			if k == nil {
				r.number++
				k = &known{name: room.Name, number: FirstNumber + r.number}
				own.rooms[room.Name] = k
				r.where[room.Name] = b.Server // The newest room of a name is the present one.
			}
			r.setLocked(b, k, room.Entry, entry, fn)
		}
		kept[room.Name] = true
		own.order = append(own.order, k)
	}
	for name, k := range own.rooms {
		if !kept[name] {
			r.removeLocked(b.Server, own, name, k, fn)
		}
	}
}

// hasRooms reports whether a board has the same rooms as before, which is nearly always so: then
// none of them is looked up.
func (b *board) hasRooms(rooms []cluster.Room) bool {
	if len(b.order) != len(rooms) || len(b.order) != len(b.rooms) {
		return false
	}
	for i, k := range b.order {
		if k.name != rooms[i].Name {
			return false
		}
	}
	return true
}

// decodeEntry returns the entry of a room, or nil if it is malformed.
func decodeEntry(data []byte) *clusterv1.Entry {
	entry := new(clusterv1.Entry)
	if proto.Unmarshal(data, entry) != nil {
		return nil
	}
	return entry
}

// setLocked sets the entry of a room.
func (r *rooms) setLocked(b *cluster.Board, k *known, data []byte, entry *clusterv1.Entry, fn func(Change)) {
	k.data = data
	r.setCodeLocked(k.name, k, string(entry.GetCode()))
	if b.Suspect {
		entry = nil
	}
	fn(Change{Number: k.number, Server: b.Server, Room: k.name, Entry: entry})
}

// setCodeLocked sets the digest of a room's code. Of two rooms with one code the later one is
// found.
func (r *rooms) setCodeLocked(name string, k *known, code string) {
	if k.code != "" && k.code != code && r.codes[k.code] == name {
		delete(r.codes, k.code)
	}
	if k.code = code; code != "" {
		r.codes[code] = name
	}
}

// CodeDigest returns the digest of the code of a private room, as entries of boards have it. Other
// members of the cluster can find short codes by trying all, as they can request any seat.
func CodeDigest(code string) []byte {
	sum := sha256.Sum256([]byte(code))
	return sum[:16]
}

// WithCode returns the name of the room of another server with a code, as of the last Sync. It
// does not wait.
func (m *Member) WithCode(code string) (room string, ok bool) {
	m.rooms.mu.Lock()
	defer m.rooms.mu.Unlock()
	room, ok = m.rooms.codes[string(CodeDigest(code))]
	return room, ok
}

// sameBytes reports whether two immutable slices are the same memory.
func sameBytes(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// dropLocked removes the rooms of a server that is no longer listed.
func (r *rooms) dropLocked(id string, b *board, fn func(Change)) {
	for name, k := range b.rooms {
		r.removeLocked(id, b, name, k, fn)
	}
	delete(r.servers, id)
}

func (r *rooms) removeLocked(id string, b *board, name string, k *known, fn func(Change)) {
	delete(b.rooms, name)
	if r.where[name] == id { // Otherwise another server has the room already, with its code.
		delete(r.where, name)
		r.setCodeLocked(name, k, "")
		r.elsewhereLocked(name)
	}
	fn(Change{Number: k.number, Server: id, Room: name})
}

// elsewhereLocked finds the room of a name that has ended on one server, and that another one has
// too: the older room of a server that was cut off.
func (r *rooms) elsewhereLocked(name string) {
	for id, b := range r.servers {
		if k := b.rooms[name]; k != nil {
			r.where[name] = id
			r.setCodeLocked(name, k, k.code)
			return
		}
	}
}

// Lists is Where for the rooms of servers that are not suspect.
func (m *Member) Lists(room string) (server string, ok bool) {
	m.rooms.mu.Lock()
	defer m.rooms.mu.Unlock()
	server, ok = m.rooms.where[room]
	return server, ok && !m.rooms.servers[server].suspect
}

// Where returns the id of the other server with a room, as of the last Sync. It does not wait.
func (m *Member) Where(room string) (server string, ok bool) {
	m.rooms.mu.Lock()
	defer m.rooms.mu.Unlock()
	server, ok = m.rooms.where[room]
	return server, ok
}

// Rooms returns the number of rooms of other servers, as of the last Sync.
func (m *Member) Rooms() int {
	m.rooms.mu.Lock()
	defer m.rooms.mu.Unlock()
	return len(m.rooms.where)
}
