package agones

import (
	"context"
	"maps"
	"slices"
)

// hintStep writes the counters and the list that the fleet declares, if they have changed.
func (r *reporter) hintStep(ctx context.Context, load Load) bool {
	now := r.now()
	r.mu.Lock()
	server := r.server
	r.mu.Unlock()
	if server == nil || r.counters != nil && now-r.hinted < hintTime {
		return true
	}
	if r.counters == nil {
		r.counters = map[string]int64{}
	}
	r.hinted = now
	for name, count := range map[string]int{roomsKey: load.Rooms, playersKey: load.Players} {
		if !r.count(ctx, server, name, int64(count)) {
			return false
		}
	}
	return r.list(ctx, server)
}

// count writes a counter. Agones refuses a count above the capacity.
func (r *reporter) count(ctx context.Context, server *gameServer, name string, count int64) bool {
	c, declared := server.counters[name]
	count = max(min(count, int64(c.Capacity)), 0)
	written, known := r.counters[name]
	if !declared || known && written == count {
		return true
	}
	err := r.client.setCounter(ctx, name, count)
	if ctx.Err() != nil || !r.log("counters", err) {
		return false
	}
	r.counters[name] = count
	return true
}

// list writes the names of the rooms.
func (r *reporter) list(ctx context.Context, server *gameServer) bool {
	l, declared := server.lists[roomsKey]
	if !declared {
		return true
	}
	names := r.cfg.Names(int(max(min(l.Capacity, maxNames), 0)))
	if r.names != nil && slices.Equal(names, r.names) {
		return true
	}
	err := r.client.setList(ctx, roomsKey, names)
	if ctx.Err() != nil || !r.log("list", err) {
		return false
	}
	r.names = append([]string{}, names...)
	return true
}

// compareHints forgets the written values that Agones does not have, so that they are written
// again: an allocation may change them, and a sidecar may have restarted before it stored them.
func (r *reporter) compareHints(server *gameServer) {
	maps.DeleteFunc(r.counters, func(name string, count int64) bool { return int64(server.counters[name].Count) != count })
	if !slices.Equal(server.lists[roomsKey].Values, r.names) {
		r.names = nil
	}
}
