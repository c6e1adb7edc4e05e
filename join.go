package netloop

import (
	"encoding/json"
	"fmt"
)

// Join is what a client said when it asked to come in, and what the game's
// admission made of it.
type Join struct {
	// Subject names the player. Admission may set it, from a token for instance;
	// before that it is empty. The limits of messages are then the player's, over all
	// of its connections, and outlive them. Without it they are each connection's, and
	// outlive it at its address: see [RPCLimits].
	Subject string
	// Claims is what admission found out about the player, for the game's use.
	Claims map[string]any
	// Token is what the client sent to prove who it is.
	Token string
	// Addr is the address that the client comes from.
	Addr string
	// Minor is the minor version of the schema that is in force: the smaller of the
	// server's and the client's.
	Minor int

	params []byte
}

// Params decodes the value that the client gave as client.Config Join into dst,
// a pointer. It travels as JSON.
func (j *Join) Params(dst any) error {
	if len(j.params) == 0 {
		return nil
	}
	if err := json.Unmarshal(j.params, dst); err != nil {
		return fmt.Errorf("netloop: the client's join parameters: %w", err)
	}
	return nil
}

// RoleClaim is the claim that [Join.Role] reads.
const RoleClaim = "role"

// Role returns what the player may do, for [MinRole]: the claim [RoleClaim], a
// whole number that the game gives its meaning, such as 0 for a player and 1 for a
// moderator. Without the claim, or with one that is no number, it is 0. Claims of
// a JSON token are numbers too.
func (j *Join) Role() int {
	switch role := j.Claims[RoleClaim].(type) {
	case int:
		return role
	case int64:
		return int(role)
	case float64:
		return int(role)
	}
	return 0
}

// LeaveReason says why a client left.
type LeaveReason struct {
	Code Code
	Text string
}
