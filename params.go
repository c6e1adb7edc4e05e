package netloop

import (
	"fmt"

	"github.com/netloop/netloop/internal/schema"
)

// pack encodes the parameters of a room, so that the room shares no memory with the caller and a
// recording contains them.
func (s *RoomSpec) pack() error {
	if s.Params == nil {
		return nil
	}
	packed, err := schema.Pack(s.Params)
	if err != nil {
		return ConfigError("Room.Params", fmt.Sprintf("%T", s.Params), "use a plain struct or a protobuf message: %v", err)
	}
	if len(packed) > MaxMessage {
		return ConfigError("Room.Params", fmt.Sprintf("%d bytes", len(packed)), "use at most %d", MaxMessage)
	}
	s.Params, s.packed = nil, packed
	return nil
}

// Params decodes [RoomSpec] Params of the room into dst, a pointer to a value of the same type;
// without Params dst is not changed. Any goroutine may call it.
func (r *Room) Params(dst any) error {
	if r.spec.packed == "" {
		return nil
	}
	if err := r.spec.packed.Into(dst); err != nil {
		return fmt.Errorf("netloop: the parameters of room %q: %w", r.spec.Name, err)
	}
	return nil
}
