package agones

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"
	"time"
)

// state is the state of a GameServer in Agones.
type state string

// The states that the server distinguishes. All others precede ready.
const (
	unknown      state = ""
	requestReady state = "RequestReady"
	ready        state = "Ready"
	reserved     state = "Reserved"
	allocated    state = "Allocated"
	shutdown     state = "Shutdown"
	unhealthy    state = "Unhealthy"
	failed       state = "Error"
)

// gameServer is the part of a GameServer that the server uses.
type gameServer struct {
	state    state
	address  string        // of players, host:port; empty while Agones has given none
	deleted  bool          // Kubernetes deletes the GameServer
	period   time.Duration // of health checks; 0 is unknown
	counters map[string]counter
	lists    map[string]list
}

// counter is a counter that the fleet declares.
type counter struct {
	Count    number `json:"count"`
	Capacity number `json:"capacity"`
}

// list is a list that the fleet declares.
type list struct {
	Values   []string `json:"values"`
	Capacity number   `json:"capacity"`
}

// number is an integer of protobuf's JSON, which writes one of 64 bits as a string.
type number int64

// UnmarshalJSON implements json.Unmarshaler.
func (n *number) UnmarshalJSON(text []byte) error {
	v, err := strconv.ParseInt(strings.Trim(string(text), `"`), 10, 64)
	if string(text) == "null" {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%.40q is not an integer", text)
	}
	*n = number(v)
	return nil
}

// maxState is the limit of the name of a state.
const maxState = 64

var errNoState = errors.New("it is not the GameServer of a sidecar of Agones: it has no state")

// message is a GameServer in the form of the sidecar.
type message struct {
	Meta struct {
		Deletion number `json:"deletion_timestamp"`
	} `json:"object_meta"`
	Spec struct {
		Health struct {
			Period number `json:"period_seconds"`
		} `json:"health"`
	} `json:"spec"`
	Status struct {
		State   state  `json:"state"`
		Address string `json:"address"`
		Ports   []struct {
			Name string `json:"name"`
			Port number `json:"port"`
		} `json:"ports"`
		Counters map[string]counter `json:"counters"`
		Lists    map[string]list    `json:"lists"`
	} `json:"status"`
}

// decodeGameServer decodes an answer of at most maxAnswer bytes.
func decodeGameServer(text []byte) (*gameServer, error) {
	var m message
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("it is not the GameServer of a sidecar of Agones: %w", err)
	}
	return m.gameServer()
}

// decodeWatched decodes a message of a watch.
func decodeWatched(text []byte) (*gameServer, error) {
	var m struct {
		Result *message                  `json:"result"`
		Error  *struct{ Message string } `json:"error"`
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("it is not the GameServer of a sidecar of Agones: %w", err)
	}
	switch {
	case m.Error != nil:
		return nil, fmt.Errorf("the sidecar has an error: %.*q", maxReason, m.Error.Message)
	case m.Result == nil:
		return nil, errNoState
	}
	return m.Result.gameServer()
}

func (m *message) gameServer() (*gameServer, error) {
	if m.Status.State == unknown || len(m.Status.State) > maxState {
		return nil, errNoState
	}
	const day = number(24 * time.Hour / time.Second)
	return &gameServer{
		state:    m.Status.State,
		address:  m.address(),
		deleted:  m.Meta.Deletion != 0,
		period:   time.Duration(min(max(m.Spec.Health.Period, 0), day)) * time.Second,
		counters: m.Status.Counters,
		lists:    m.Status.Lists,
	}, nil
}

// The limit of the name of a machine, and the name of the port that players use. If no port has
// this name, they use the first one.
const (
	maxHost  = 253
	gamePort = "default"
)

// address returns the address of players, or "".
func (m *message) address() string {
	host, ports := m.Status.Address, m.Status.Ports
	if host == "" || len(host) > maxHost || len(ports) == 0 {
		return ""
	}
	port := ports[0].Port
	for _, p := range ports {
		if p.Name == gamePort {
			port = p.Port
		}
	}
	if port < 1 || port > math.MaxUint16 {
		return ""
	}
	return net.JoinHostPort(host, strconv.FormatInt(int64(port), 10))
}
