package main

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/netloop/netloop/internal/clock"
)

// The lists of the director, compared with those of the servers.

// serverInfo is a server in the director's list.
type serverInfo struct {
	ID      string
	Suspect bool
	Clients int
}

// known returns the servers that the director knows and that are not suspect.
func (f *fleet) known(ctx context.Context) (all []serverInfo) {
	var answer struct{ Servers []serverInfo }
	if err := f.door.ask(ctx, "GET", "/servers", &answer); err != nil {
		return nil
	}
	return slices.DeleteFunc(answer.Servers, func(s serverInfo) bool { return s.Suspect })
}

// suspects reports whether the director does not hear a server.
func (f *fleet) suspects(ctx context.Context, id string) bool {
	return !slices.ContainsFunc(f.known(ctx), func(s serverInfo) bool { return s.ID == id })
}

// listing is the director's list: the names of rooms by server. It is nil without an answer.
func (f *fleet) listing(ctx context.Context) map[string][]string {
	var answer struct {
		Rooms []struct{ Name, Server string }
	}
	if err := f.door.ask(ctx, "GET", "/rooms?limit=10000&kind="+kindTable, &answer); err != nil {
		return nil
	}
	all := map[string][]string{}
	for _, r := range answer.Rooms {
		all[r.Server] = append(all[r.Server], r.Name)
	}
	return all
}

// roomsOf returns the names of a server's rooms in the director's list.
func (f *fleet) roomsOf(ctx context.Context, server string) []string { return f.listing(ctx)[server] }

// unlists reports whether the director answers, and lists no room of a server.
func (f *fleet) unlists(ctx context.Context, server string) bool {
	all := f.listing(ctx)
	return all != nil && len(all[server]) == 0
}

// own returns the names of a server's rooms, as it tells itself. It reports false without an
// answer.
func (f *fleet) own(ctx context.Context, p *process) (names []string, ok bool) {
	var answer struct{ Rooms []struct{ Name string } }
	d := door{at: p.at.Admin}
	if err := d.ask(ctx, "GET", "/rooms?sort=name&limit=1000&kind="+kindTable, &answer); err != nil {
		return nil, false
	}
	for _, r := range answer.Rooms {
		names = append(names, r.Name)
	}
	return names, true
}

// lists reports whether the director lists a server with its rooms, and no others of it.
func (f *fleet) lists(ctx context.Context, p *process) bool {
	own, ok := f.own(ctx, p)
	return ok && !f.suspects(ctx, p.at.Server) && slices.Equal(own, f.roomsOf(ctx, p.at.Server))
}

// whole is lists for all servers.
func (f *fleet) whole(ctx context.Context) bool {
	return !slices.ContainsFunc(f.processes, func(p *process) bool { return !f.lists(ctx, p) })
}

// servers returns the present processes of the servers.
func (f *fleet) servers() []*process {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.processes)
}

const (
	watchEvery = 200 * time.Millisecond
	// listedTime is the limit of the time for which a room is listed that is not there. On a quiet
	// machine it is 3 s.
	listedTime = 8 * time.Second
)

// watch checks all the time that the director lists no room for long that is not there.
func (f *fleet) watch(ctx context.Context) {
	type entry struct{ server, room string }
	gone := map[entry]time.Time{} // listed rooms that are not there, since when
	for clock.Sleep(ctx, watchEvery) {
		now := time.Now()
		there := map[entry]bool{}
		listed := f.listing(ctx)
		for _, p := range f.servers() {
			if !p.runs() {
				continue
			}
			names, ok := f.own(ctx, p)
			if !ok {
				names = listed[p.at.Server] // It may be busy.
			}
			for _, name := range names {
				there[entry{p.at.Server, name}] = true
			}
		}
		still := map[entry]time.Time{}
		for server, names := range listed {
			for _, name := range names {
				e := entry{server, name}
				if there[e] {
					continue
				}
				since, known := gone[e]
				if !known {
					since = now
				}
				still[e] = since
				f.ledger.absent(now.Sub(since))
				if now.Sub(since) > listedTime {
					f.ledger.fault("room %s is listed for %v, and server %.6s does not have it", name, now.Sub(since).Round(time.Millisecond), server)
					still[e] = now // One fault is enough.
				}
			}
		}
		gone = still
	}
}

// seats returns the rooms with a connected client of each player, at the servers that answer.
func (f *fleet) seats(ctx context.Context) map[string][]string {
	at := map[string][]string{}
	for _, p := range f.processes {
		names, _ := f.own(ctx, p)
		for _, room := range names {
			var answer struct {
				Clients []struct{ Subject, State string }
			}
			d := door{at: p.at.Admin}
			if d.ask(ctx, "GET", "/api/clients?room="+url.QueryEscape(room), &answer) != nil {
				continue // It may have ended.
			}
			for _, c := range answer.Clients {
				if c.State == "connected" {
					at[c.Subject] = append(at[c.Subject], p.name+"/"+room)
				}
			}
		}
	}
	return at
}

// seatedOnce checks that no player has two seats, when the players do not move: the seats of a move
// overlap for a moment.
func (f *fleet) seatedOnce(ctx context.Context) {
	defer f.still.Store(f.still.Swap(true))
	var twice map[string][]string
	if f.until(ctx, "", func() bool {
		twice = f.seats(ctx)
		maps.DeleteFunc(twice, func(_ string, rooms []string) bool { return len(rooms) < 2 })
		return len(twice) == 0
	}) != nil {
		f.ledger.fault("players have seats in several rooms: %v", twice)
	}
}
