package netloop

import (
	"encoding/json"
	"fmt"
)

// Join is what a client said when it asked to come in, and what the game's
// admission made of it.
type Join struct {
	// Subject names the player. Admission may set it, from a token for instance;
	// before that it is empty.
	Subject string
	// Claims is what admission found out about the player, for the game's use.
	Claims map[string]any
	// Token is what the client sent to prove who it is.
	Token string
	// Addr is the address that the client comes from.
	Addr string

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

// LeaveReason says why a client left.
type LeaveReason struct {
	Code Code
	Text string
}
