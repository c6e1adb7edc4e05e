package netloop

import (
	"github.com/netloop/netloop/internal/directory"
	"github.com/netloop/netloop/internal/grid"
	"github.com/netloop/netloop/internal/limits"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/schema"
)

// bounds returns the rows of this package in docs/LIMITS.md: the limits that a program configures.
// An empty configuration has the defaults.
func bounds() limits.Table {
	c, err := Config{}.validate()
	if err != nil {
		panic(err)
	}
	return limits.Table{
		limits.Door:      doorBounds(&c),
		limits.Session:   sessionBounds(&c),
		limits.Queues:    queueBounds(&c),
		limits.State:     stateBounds(&c),
		limits.Answers:   answerBounds(&c),
		limits.Operation: operationBounds(&c),
	}
}

func doorBounds(c *Config) []limits.Limit {
	return []limits.Limit{
		{
			Name:    "unadmitted connections: from a proven address, before their admission",
			Default: limits.Say("%v: a quarter of the clients, %v at least", maxStrangers(c.Room.MaxClients), minStrangers), Unit: "connections",
			Config: "RoomSpec.MaxClients, --max-clients", Counter: "handshake/dismissed, handshake/too_many, netloop_strangers",
			Full: "one of the site (IPv4 address, IPv6 /56) with the most makes room (`CODE_BUSY`): its oldest, " +
				"and among equals one that is old enough; else the newcomer is refused",
		},
		{
			Name: "how long `OnAdmit` may take", Default: c.AdmitTimeout, Unit: "all of them together",
			Config: "Config.AdmitTimeout", Counter: "netloop_refusals_total", Full: "refused (`CODE_TIMEOUT`)",
		},
		{
			Name: "clients", Default: c.Room.MaxClients, Unit: "clients; a seat is taken after `OnAdmit`",
			Config: "RoomSpec.MaxClients, --max-clients", Counter: "netloop_refusals_total", Full: "refused (`CODE_FULL`)",
		},
		{
			Name: "spectators", Default: limits.Say("%v, at most %v", c.Room.MaxSpectators, maxMaxClients), Unit: "clients beside those", Config: "RoomSpec.MaxSpectators",
			Counter: "netloop_refusals_total", Full: "refused (`CODE_FULL`)",
		},
		{
			Name: "… the delay of their picture", Default: limits.Say("%v, at most %v", c.Room.SpectatorDelay, maxSpectatorDelay), Config: "RoomSpec.SpectatorDelay",
			Full: "`New` and `OpenRoom` return an error",
		},
		{
			Name: "reserved seats", Default: c.Room.MaxClients, Unit: "seats, those that are taken included; so many tickets there are",
			Config: "RoomSpec.MaxClients, --max-clients", Full: "`Reserve` reserves none (`CODE_FULL`)",
		},
		{
			Name: "… how long one is kept", Default: limits.Say("%v, at most %v", defaultTicketTTL, maxTicketTTL), Config: "Reservation.TTL",
			Counter: "tickets/unknown", Full: "the seat is free, the ticket refused (`CODE_TICKET`)",
		},
		{
			Name: "invalid tickets and codes of a site", Default: limits.Say("%v at once, then one in %v", directory.RoomBurst, directory.RoomGap),
			Counter: "tickets/site", Full: "refused unseen (`CODE_BUSY`)",
		},
		{
			Name: "rooms", Default: c.MaxRooms, Unit: "rooms, the default one included", Config: "Config.MaxRooms",
			Counter: "netloop_rooms", Full: "`ErrTooManyRooms`; a client that asks for one is refused (`CODE_FULL`)",
		},
		{
			Name: "… the parameters of one", Default: limits.Bytes(MaxMessage), Unit: "encoded", Full: "`OpenRoom` returns an error",
		},
		{
			Name: "… the published info of one", Default: limits.Bytes(MaxMessage), Unit: "encoded", Full: "`Room.Publish` panics",
		},
		{
			Name: "… the interval at which the list of rooms is made", Default: limits.Say("every %v", directory.BoardGap), Full: "seen later; watchers get all changes of the interval together",
		},
		{
			Name: "rooms that clients of a site (IPv4 address, IPv6 /56) let a game open", Default: limits.Say("%v at once, then one in %v", directory.RoomBurst, directory.RoomGap),
			Counter: "rooms/site", Full: "refused (`CODE_BUSY`)",
		},
		{
			Name: "… such a room without anybody", Default: emptyFor, Unit: "of game time", Config: "RoomSpec.CloseEmpty",
			Counter: "netloop_rooms_ended_total", Full: "it closes",
		},
		{
			Name: "… sites that are remembered", Default: directory.MaxSites, Unit: "sites", Counter: "rooms/site", Full: "refused (`CODE_BUSY`)",
		},
		{
			Name: "clients of all rooms", Default: c.MaxClients, Unit: "connections", Config: "Config.MaxClients",
			Counter: "handshake/full", Full: "refused (`CODE_FULL`)",
		},
		{
			Name: "connections that were let in", Default: limits.Say("%v: the clients of all rooms and %v more, which are about to end", c.Room.MaxClients+spareConns, spareConns),
			Unit: "connections", Config: "RoomSpec.MaxClients, --max-clients", Counter: "handshake/full", Full: "refused (`CODE_FULL`)",
		},
	}
}

func sessionBounds(c *Config) []limits.Limit {
	return []limits.Limit{
		{
			Name: "silence of a client", Default: c.LostAfter, Unit: "of game time",
			Config: "Config.LostAfter, --lost-after", Counter: `netloop_disconnects_total{code="timed out"}`,
			Full: "dropped, or closed (`CODE_TIMEOUT`)",
		},
		{
			Name: "a dropped client", Default: c.Room.KeepDropped, Unit: "of game time",
			Config: "RoomSpec.KeepDropped, --keep-dropped", Counter: "netloop_clients_dropped", Full: "it leaves",
		},
		{
			Name: "age of a client's view at its input", Default: limits.Say("%v before that, which is at most as much before its step", c.Room.MaxRewind),
			Unit: "of game time", Config: "RoomSpec.MaxRewind, --max-rewind", Counter: `netloop_views_total{outcome="old"}`,
			Full: "the view counts as that old, and the input runs",
		},
		{
			Name: "inbox of a session", Default: limits.Say("%v: the burst of its messages and %v more", c.RPC.arrivals(), minArrivals),
			Unit: "arrivals", Config: "RPCLimits.Burst, --client-burst", Counter: "inbox/session_full, inbox/waiting",
			Full: "unreliable: dropped; reliable: not queued, and a call answered, where messages wait for their turn; otherwise disconnected (`CODE_FLOOD`)",
		},
	}
}

func queueBounds(c *Config) []limits.Limit {
	return []limits.Limit{
		{
			Name: "messages of a client", Default: limits.Say("%v, bursts of %v", int(c.RPC.PerSecond), c.RPC.Burst), Unit: "a second",
			Config:  "RPCLimits.PerSecond, RPCLimits.Burst, --client-rate, --client-burst",
			Counter: `netloop_rpcs_total{outcome="client_limited"}, netloop_rpc_limits_total`,
			Full:    "beyond the burst a warning, beyond twice the burst dropped",
		},
		{
			Name: "… of one method", Default: limits.Text("any number"), Config: "Limit, LimitPerTick",
			Counter: "netloop_rpcs_total, netloop_rpc_limits_total", Full: "the same",
		},
		{
			Name: "… that were dropped by these limits", Default: c.RPC.KickAfter, Unit: "messages, forgotten at the rate above",
			Config: "RPCLimits.KickAfter, --client-kick", Counter: "netloop_rpc_limits_total", Full: "kicked (`CODE_FLOOD`)",
		},
		{
			Name: "messages that one stage of a tick runs", Default: c.RPC.Budget, Unit: "messages",
			Config: "RPCLimits.Budget", Counter: "netloop_rpcs_waited_total, netloop_queue_depth",
			Full: "every client gets an equal share, the other messages wait in order",
		},
		{
			Name: "… that a tick runs", Default: limits.Say("%v; of one client %v", c.RPC.Share, c.RPC.ClientShare),
			Unit: "of its period, by measured prices", Config: "RPCLimits.Share, RPCLimits.ClientShare",
			Counter: "netloop_rpcs_waited_total, netloop_queue_depth", Full: "the same, in equal times",
		},
	}
}

func stateBounds(c *Config) []limits.Limit {
	return []limits.Limit{
		{
			Name: "records of a snapshot, per client", Default: c.Room.Budget, Unit: "bytes a tick",
			Config: "RoomSpec.Budget, Client.SetBudget, --client-budget", Counter: "netloop_snapshot_records_waited_total",
			Full: "they remain pending and are sent by weight",
		},
		{
			Name: "grids", Default: limits.Say("%v, with %v viewpoints of each client", netvar.MaxSpaces, MaxViewpoints), Unit: "grids",
			Full: "Open fails; SetView panics",
		},
		{
			Name: "radius and margin of a grid", Default: grid.MaxReach - 1, Unit: "cells, together", Full: "Open fails",
		},
	}
}

func answerBounds(c *Config) []limits.Limit {
	return []limits.Limit{
		{
			Name: "pending answers of `HandleLater`", Default: c.RPC.Answers, Unit: "per client", Config: "RPCLimits.Answers",
			Counter: `netloop_rpcs_total{outcome="failed"}`, Full: "the call is refused (`CODE_BUSY`)",
		},
		{
			Name: "… the time limit of each", Default: schema.DefaultTimeout, Unit: "from the call on", Config: "Timeout",
			Counter: "reply/second, reply/client_gone, reply/timed_out", Full: "an answer after that, a second one, or one for a client that has left is dropped",
		},
	}
}

func operationBounds(c *Config) []limits.Limit {
	return []limits.Limit{
		{
			Name: "a tick that does not return", Default: c.Watchdog, Config: "Config.Watchdog, --watchdog",
			Counter: "netloop_hung_ticks_total", Full: "the log says where, `/readyz` and `/healthz` fail; with `WatchdogExit` the server ends",
		},
		{
			Name: "due calls of a periodic system that catch up", Default: limits.Say("none; with `CatchUp` %v, %v at most", DefaultCatchUp, loop.MaxCatchUp),
			Unit: "a tick", Config: "CatchUp", Counter: "netloop_system_missed_total", Full: "given up",
		},
	}
}
