package inspect

// Cluster is the answer of /api/cluster. Without a cluster only Text is set.
type Cluster struct {
	Server string `json:"server"` // id of this server; empty without a cluster
	// Connected reports whether this server can claim names, as netloop_cluster_connected does.
	// Text says so in words.
	Connected bool            `json:"connected"` // the server can claim names
	Text      string          `json:"text"`      // the connection to the cluster in words
	Servers   []ClusterServer `json:"servers"`   // in the order of their ids
	Rooms     []ClusterRoom   `json:"rooms"`     // by servers and names; at most MaxClusterRooms
	Total     int             `json:"total"`     // matching rooms, listed or not
	Moves     []Move          `json:"moves"`     // the newest first; at most MaxMoves
}

// MaxClusterRooms is the limit of rooms in the answer of /api/cluster.
const MaxClusterRooms = 1000

// ClusterServer is a server of the cluster, as of its last heartbeat.
type ClusterServer struct {
	ID     string `json:"id"`     // of the server
	Own    bool   `json:"own"`    // it is this server
	Region string `json:"region"` // as configured
	Zone   string `json:"zone"`   // as configured
	// Schema is the fingerprint of the game's schema. A server opens rooms on servers with its own
	// schema only.
	Schema     string           `json:"schema"`      // fingerprint of the game's schema
	Suspect    bool             `json:"suspect"`     // three heartbeats are missing
	Draining   bool             `json:"draining"`    // it takes no new room
	Rooms      int              `json:"rooms"`       // number of its rooms
	MaxRooms   int              `json:"max_rooms"`   // limit of rooms
	Clients    int              `json:"clients"`     // clients of all its rooms
	MaxClients int              `json:"max_clients"` // limit of clients
	Overload   string           `json:"overload"`    // the level of its most overloaded room
	Addresses  []ClusterAddress `json:"addresses"`   // for players
}

// ClusterAddress is an address at which players reach a server.
type ClusterAddress struct {
	Carrier string `json:"carrier"` // quic, webtransport or websocket
	Addr    string `json:"addr"`    // host and port, or a URL
}

// ClusterRoom is a room on the board of a server. Default rooms are on no board.
type ClusterRoom struct {
	Name   string `json:"name"`   // of the room
	Kind   string `json:"kind"`   // of the room
	Server string `json:"server"` // id of its server
	Own    bool   `json:"own"`    // it is a room of this server
	// State is open, closing or hung for a room of this server. A room of another server is open,
	// unlisted (private, locked or closing: its board does not tell which), or unknown while its
	// server is suspect.
	State   string `json:"state"`   // open, closing, hung, unlisted or unknown
	Locked  bool   `json:"locked"`  // known for the rooms of this server alone
	Players int    `json:"players"` // taken and reserved seats of players
	Max     int    `json:"max"`     // largest number of players
}

// The states of a room of another server, besides that of an open room.
const (
	RoomUnlisted = "unlisted"
	RoomUnknown  = "unknown"
)
