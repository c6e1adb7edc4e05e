package room

import (
	"context"
	"log/slog"
)

// tickHandler adds the room, tick, system and client to each record of a room's log. It reads the
// room's state and therefore belongs to the room's goroutine, as do the loggers that use it.
type tickHandler struct {
	slog.Handler
	core *core
}

func (h *tickHandler) Handle(ctx context.Context, rec slog.Record) error {
	if name := h.core.spec.Name; name != "" {
		rec.AddAttrs(slog.String("room", name))
	}
	if now := h.core.now; now.Stage != 0 {
		rec.AddAttrs(slog.Uint64("tick", now.Tick), slog.String("system", now.System))
	}
	if c := h.core.from; c != nil {
		rec.AddAttrs(slog.Uint64("client", c.id))
	}
	return h.Handler.Handle(ctx, rec)
}

func (h *tickHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &tickHandler{h.Handler.WithAttrs(attrs), h.core}
}

func (h *tickHandler) WithGroup(name string) slog.Handler {
	return &tickHandler{h.Handler.WithGroup(name), h.core}
}
