package metrics

import (
	"sync/atomic"

	"github.com/netloop/netloop/internal/metrics/ticks"
	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/transport"
)

//go:generate go test -run ^TestEverySeriesIsDocumented$ -rewrite

// row is one family of series: its name after netloop_, its kind, the labels of its series, its
// help text, and the source of its values (source.go).
type row struct {
	name   string
	kind   kind
	labels string // separated by spaces
	help   string
	source source
}

// table lists all measurements of a server; make metrics writes docs/METRICS.md from it.
//
// To add a counter, count the event in a number next to the code that handles it, and add a row
// here that reads the number. Packages without a Stats count in a family of Metrics, which the row
// sets with into.
var table = []row{
	// Ticks: their durations and lateness.
	{"tick_duration_seconds", histogram, "", "Time that one tick took.",
		into(func(m *Metrics, f *Family) { m.tickDuration = f.observer() })},
	{"tick_lateness_seconds", histogram, "", "Time from a tick's deadline to its start.",
		into(func(m *Metrics, f *Family) { m.tickLateness = f.observer() })},
	{"stage_duration_seconds", histogram, "stage", "Time that one stage took in one tick.",
		into(func(m *Metrics, f *Family) { m.observeStages(f) })},
	{"system_duration_seconds", histogram, "system stage", "Time that one system took at one stage in one tick.",
		into(func(m *Metrics, f *Family) { m.systemDuration = f })},
	{"ticks_total", counter, "", "Ticks that ran.",
		account(func(a *ticks.Snapshot, f *Family) { f.Set(a.Ticks) })},
	{"tick_overruns_total", counter, "", "Ticks that took longer than the tick period.",
		account(func(a *ticks.Snapshot, f *Family) { f.Set(a.Overruns) })},
	{"dropped_ticks_total", counter, "", "Ticks that never ran because the server had fallen too far behind.",
		account(func(a *ticks.Snapshot, f *Family) { f.Set(a.DroppedTicks) })},
	{"tick_period_seconds", gauge, "", "Period of the ticks of the default room: the time that one tick may take.",
		account(func(a *ticks.Snapshot, f *Family) { f.SetFloat(a.Budget.Seconds()) })},
	{"tick_rate_hertz", gauge, "", "Ticks per second of all rooms together, measured over the last five seconds, or 1 024 ticks.",
		scraped(func(m *Metrics, f *Family) { _, hertz := m.Pace(); f.SetFloat(hertz) })},
	{"hung_ticks_total", counter, "", "Ticks, and hooks at the end, that the watchdog reported because they did not return.",
		into(func(m *Metrics, f *Family) { m.Hangs = f })},
	{"rooms_handed_over_total", counter, "result", "Hand-overs of rooms to other servers: ok; those after which the room continued here, because its state could not be stored (save) or the other server did not open it (refused); and rooms that ended because another server had their name (lost).",
		into(func(m *Metrics, f *Family) { m.HandedOver = f })},
	{"left_behind_total", counter, "hook", "Functions of the game or the program that ignored the end of their context, so that the end of the room or server stopped waiting for them.",
		into(func(m *Metrics, f *Family) { m.LeftBehind = f })},
	{"slow_tick_traces_total", counter, "outcome", "Ticks over budget by the outcome of their execution trace: written, skipped because one was written shortly before, failed.",
		server(Server.Traces)},
	{"time_scale", gauge, "", "Speed of scaled time relative to game time in the default room: 0 is a pause.",
		server(Server.TimeScale)},

	// Load: the restrictions of an overloaded server.
	{"overload_level", gauge, "", "Overload level of the most overloaded room, by its effect: 0 none, 1 half of the snapshots, 2 objects of low priority, 3 new clients.",
		server(Server.Overload)},
	{"overloaded_ticks_total", counter, "", "Ticks that ran at an overload level above 0.",
		into(func(m *Metrics, f *Family) { m.OverloadedTicks = f })},

	// Rooms, by their kind if they have one. Kinds after the first 16 count as other.
	{"rooms", gauge, "kind", "Open rooms.",
		into(func(m *Metrics, f *Family) { m.rooms = f })},
	{"rooms_asleep", gauge, "kind", "Rooms that sleep: they run no ticks until they have work.",
		into(func(m *Metrics, f *Family) { m.asleep = f })},
	{"rooms_opened_total", counter, "kind", "Rooms that were opened.",
		into(func(m *Metrics, f *Family) { m.opened = f })},
	{"rooms_ended_total", counter, "kind code", "Rooms that have ended, by the code that their clients received.",
		into(func(m *Metrics, f *Family) { m.ended = f })},
	{"room_clients", gauge, "kind", "Clients in the rooms of a kind.",
		room(func(r Room, p Part) { p.Set(uint64(r.Clients()), p.Kind()) })},
	{"spectator_delay_bytes", gauge, "", "Bytes in the delay buffers of spectators: see RoomSpec.SpectatorDelay.",
		room(func(r Room, p Part) { p.Set(uint64(r.DelayBuffer())) })},
	{"room_tick_duration_seconds", histogram, "kind", "Time that one tick took in a room of a kind.",
		into(func(m *Metrics, f *Family) { m.kindDuration = f })},
	{"room_tick_lateness_seconds", histogram, "kind", "Time from the deadline to the start of a tick, in a room of a kind.",
		into(func(m *Metrics, f *Family) { m.kindLateness = f })},

	// Faults of the game's code.
	{"system_panics_total", counter, "system", "Panics of systems, hooks such as OnJoin, and handlers, that were isolated.",
		into(func(m *Metrics, f *Family) { m.Panics = f })},
	{"system_missed_total", counter, "system", "Calls of periodic systems that were due and skipped.",
		into(func(m *Metrics, f *Family) { m.missed = f })},
	{"systems_quarantined", gauge, "", "Systems that do not run because they panicked repeatedly.",
		server(Server.Quarantined)},
	{"state_misuses_total", counter, "kind", "Findings of the state checks: fields changed without Edit, values refused because they do not fit.",
		into(func(m *Metrics, f *Family) { m.Misuses = f })},

	// Clients and their connections.
	{"clients", gauge, "", "Clients in all rooms, including those that have lost their connection and may return.",
		room(func(r Room, p Part) { p.Set(uint64(r.Clients())) })},
	{"clients_dropped", gauge, "", "Clients that have lost their connection and may return.",
		room(func(r Room, p Part) { p.Set(uint64(r.Dropped())) })},
	{"transport_clients", gauge, "transport", "Clients with a connection, by its transport: quic, webtransport, websocket, or memory within the process.",
		room(Room.Transports)},
	{"clients_resumed_total", counter, "kind", "Clients that resumed: with their copies of the state (kept), without them (bare), or as another program of the same player (taken_over).",
		into(func(m *Metrics, f *Family) { m.Resumes = f })},
	{"strangers", gauge, "", "Unadmitted connections: half-open handshakes, and clients with an undecided admission.",
		traffic(func(s *transport.Stats, f *Family) { f.Set(uint64(max(0, s.Unadmitted.Load()))) })},
	{"address_validations_total", counter, "", "First packets answered with a request to prove the sender's address, because many handshakes were half open.",
		traffic(func(s *transport.Stats, f *Family) { f.Set(s.Retries.Load()) })},
	{"handshakes_total", counter, "transport", "Connections that finished the cryptographic handshake, by transport: quic, webtransport or websocket.",
		traffic(func(s *transport.Stats, f *Family) { byTransport(&s.Handshakes, f) })},
	{"joins_total", counter, "transport", "Connections that were admitted, including those of resuming clients, by transport.",
		traffic(func(s *transport.Stats, f *Family) { byTransport(&s.Joined, f) })},
	{"refusals_total", counter, "", "Connections that were declined, by the server or by the game.",
		traffic(func(s *transport.Stats, f *Family) { f.Set(s.Refused.Load()) })},
	{"tokens_total", counter, "outcome", "Tokens of joining clients by outcome: accepted, or the fault.",
		server(Server.Tokens)},
	{"token_ids", gauge, "", "Ids of tokens that were used and have not expired yet, of at most 65 536.",
		server(Server.TokenIDs)},
	{"auth_key_reloads_total", counter, "outcome", "New keys of tokens by outcome: loaded, or failed, after which the earlier ones are still in use.",
		server(Server.KeyReloads)},
	{"disconnects_total", counter, "code", "Connections that ended, by disconnect code.",
		traffic(func(s *transport.Stats, f *Family) {
			s.Disconnects(func(code string, n uint64) { f.setCounted(n, code) })
		})},
	{"transport_bytes_total", counter, "direction", "Bytes of datagrams and stream data.",
		traffic(func(s *transport.Stats, f *Family) {
			f.Set(s.DatagramBytesIn.Load()+s.StreamBytesIn.Load(), "in")
			f.Set(s.DatagramBytesOut.Load()+s.StreamBytesOut.Load(), "out")
		})},
	{"transport_packets_total", counter, "direction", "Datagrams.",
		traffic(func(s *transport.Stats, f *Family) {
			f.Set(s.DatagramsIn.Load(), "in")
			f.Set(s.DatagramsOut.Load(), "out")
		})},
	{"choke_total", counter, "", "Datagrams that waited 1 ms or more for a client's congestion window.",
		traffic(func(s *transport.Stats, f *Family) { f.Set(s.Chokes.Load()) })},
	{"flush_lag_seconds", histogram, "", "Time from the flush of a tick to the last datagram of a client accepted by the transport.",
		into(func(m *Metrics, f *Family) { m.flushLag = f.observer() })},
	{"socket_lag_seconds", histogram, "", "Time from the first packet of a batch until the kernel has the whole batch.",
		into(func(m *Metrics, f *Family) { m.socketLag = f.observer() })},
	{"socket_wait_seconds", histogram, "", "Time for which the kernel held the first packet of a batch before it was read.",
		into(func(m *Metrics, f *Family) { m.socketWait = f.observer() })},
	{"socket_calls_total", counter, "direction", "Calls to the kernel that sent or read UDP packets.",
		server(Server.SocketCalls)},
	{"socket_packets_total", counter, "direction outcome", "UDP packets by outcome: moved, larger than the interface carries (too_large), refused by the kernel for another reason (refused), or lost because many packets waited for the kernel (full).",
		server(Server.SocketPackets)},
	{"socket_retries_total", counter, "", "Calls that were made again a millisecond later because the kernel had no room for more packets.",
		server(Server.SocketRetries)},
	{"records_total", counter, "direction outcome", "Encrypted packets beside QUIC by outcome: sealed or opened, lost because the socket had no room (unsent), of no connection (unknown), malformed or repeated (invalid), with a wrong tag (forged), or dropped unread because their address has sent many forged ones (throttled).",
		server(Server.Records)},
	{"record_paths_total", counter, "outcome", "Changes of clients' datagrams from QUIC to encrypted packets beside it (begun), back to QUIC because these packets were lost (returned), and to another address of the client (moved).",
		server(Server.RecordPaths)},
	{"record_clients", gauge, "", "Clients whose datagrams travel beside QUIC.",
		server(Server.RecordClients)},
	{"simulated_packets_total", counter, "direction outcome", "Datagrams in the network of --simulate by outcome; duplicated, reordered and corrupted ones have passed.",
		server(Server.Simulated)},

	// Queues and messages.
	{"queue_depth", gauge, "queue", "Entries waiting in a queue.", room(Room.Depths)},
	{"queue_drops_total", counter, "queue reason", "Entries that a queue rejected or dropped.",
		joined(
			into(func(m *Metrics, f *Family) { m.Drops = f }),
			room(Room.Drops),
			traffic(func(s *transport.Stats, f *Family) {
				s.Drops(func(queue, reason string, n uint64) { f.setCounted(n, queue, reason) })
			}),
		)},
	{"rpcs_total", counter, "method stage outcome", "Messages that reached their queue, by outcome.",
		room(Room.Messages)},
	{"inputs_total", counter, "outcome", "Inputs of clients by outcome: applied in their step, missed by a step that ran, late, for a step too far ahead (ahead); and packets of inputs without a new one (duplicate), unreadable ones (malformed), and those without a handler (unhandled).",
		room(Room.Inputs)},
	{"mispredictions_reported_total", counter, "", "Wrong predictions of objects that clients have reported, at most 1 000 of one report. Each client reports its own number, once a second at most.",
		room(Room.Mispredictions)},
	{"views_total", counter, "outcome", "Views of the inputs that ran: as_sent, or clamped because the client has not acknowledged a snapshot (unseen), has whole snapshots between the two (apart), looks further back than the room allows (old), or jumps (jumped).",
		room(Room.Views)},
	{"input_margin_seconds", gauge, "kind", "Margin of a client: 95 of 100 inputs of the last second arrived at least so early, or late if it is below 0. least is the smallest margin of all clients, median that of the median client in the median room. Clients aim at the interval of their datagrams plus the jitter.",
		scraped((*Metrics).inputMargins)},
	{"rpcs_waited_total", counter, "", "Messages that waited for the next tick, once per tick, because the share of messages in the tick was used up.",
		room(Room.MessagesWaited)},
	{"rpc_limits_total", counter, "limit action dry", "Actions of the message limits against clients, including dry runs.",
		room(Room.Limits)},

	// State and snapshots.
	{"snapshot_records_total", counter, "", "Object records in snapshots.",
		state(func(s *netvar.Stats, f Part) { f.Set(s.Records) })},
	{"snapshot_bytes_total", counter, "", "Bytes of snapshots handed to the transport.",
		state(func(s *netvar.Stats, f Part) { f.Set(s.Bytes) })},
	{"snapshots_deferred_total", counter, "reason", "Snapshots that were due and could not be sent in their tick.",
		into(func(m *Metrics, f *Family) {
			m.Deferred = f
			f.Add(0, "slot_busy") // A dashboard's panel shows 0 before the first event.
			f.Add(0, "window_closed")
		})},
	{"snapshot_records_waited_total", counter, "reason", "Pending object records of a client that a snapshot left out: because its packets or its budget were used up, because it fits no packet and the stream had no room, or because the server sheds.",
		state(func(s *netvar.Stats, f Part) {
			f.Set(s.Waited-s.OverBudget-s.WaitedLarge, "packets")
			f.Set(s.WaitedLarge, "stream")
			f.Set(s.OverBudget, "budget")
			f.Set(s.Shed, "shed")
		})},
	{"full_states_total", counter, "reason", "Object records sent in full instead of as a delta.",
		state(func(s *netvar.Stats, f Part) {
			f.Set(s.FullFirst, "first")
			f.Set(s.FullVisible, "became_visible")
			f.Set(s.FullMasked, "mask_changed")
			f.Set(s.FullRequested, "requested")
			f.Set(s.FullResumed, "resumed")
			f.Set(s.FullEvicted, "evicted")
			f.Set(s.FullLarge, "large")
		})},
	{"replication_bytes_total", counter, "class", "Bytes of object records in snapshots, by class; despawns count as a class of their own.",
		room(Room.Bytes)},
	{"replication_field_bytes_total", counter, "class field", "Bytes of fields in object records, without the heads of records, estimated from one record in 1024.",
		room(Room.FieldBytes)},
	{"held_values_total", counter, "reason", "Changed values that a capture held back: below their threshold, or within their interval.",
		state(func(s *netvar.Stats, f Part) {
			f.Set(s.BelowThreshold, "threshold")
			f.Set(s.WithinInterval, "interval")
		})},
	{"clamped_values_total", counter, "", "Values cut or clamped to fit their field, NaN included.",
		state(func(s *netvar.Stats, f Part) { f.Set(s.Clamped) })},
	{"visibility_changes_total", counter, "change", "Objects that appeared to a client or disappeared from it while they lived.",
		state(func(s *netvar.Stats, f Part) {
			f.Set(s.Shown, "shown")
			f.Set(s.Hidden, "hidden")
		})},
	{"grid_bad_positions_total", counter, "", "Positions on grids that are too far out, infinite or not a number.",
		state(func(s *netvar.Stats, f Part) { f.Set(s.BadPositions) })},

	// The certificate that clients receive.
	{"certificate_left_seconds", gauge, "kind", "Time until the certificate that clients see ends, less than 0 once it has. The kind is files, config, or development, which renews itself two days before.",
		server(Server.CertificateLeft)},
	{"certificate_reloads_total", counter, "outcome", "New certificates by outcome: loaded, or failed, after which the old one is still in use.",
		server(Server.CertificateReloads)},

	// The cluster.
	{"cluster_connected", gauge, "", "1 while the server may claim names in its cluster, else 0; absent without a cluster.",
		server(Server.ClusterConnected)},
	{"cluster_servers", gauge, "kind", "Servers of the cluster, this one included: alive, or suspect after three missed heartbeats.",
		server(Server.ClusterServers)},
	{"cluster_rooms", gauge, "", "Rooms of other servers that this one knows.",
		server(Server.ClusterRooms)},

	// Monitoring, and the pages of --web.
	{"admin_refusals_total", counter, "reason", "Refused requests to the admin listener: with the host name of another machine (host), without a valid token (token), during too many other requests or streams (busy); connections that were closed for newer ones (connection), and streams whose client has stopped reading (slow).",
		server(Server.AdminRefusals)},
	{"inspect_seconds_total", counter, "", "Time of the rooms' goroutines, between ticks, for questions of the inspector, /loop and /explain.",
		into(func(m *Metrics, f *Family) { m.Inspect = f })},
	{"web_requests_total", counter, "outcome", "Requests for the pages of --web: answered, or missing because there is no such page.",
		server(Server.WebRequests)},
	{"web_connections_refused_total", counter, "reason", "Connections for pages that were closed: for a newer one at the maximum number (full), or above the rate of their site or of all sites (rate).",
		server(Server.WebConnections)},
	{"logs_dropped_total", counter, "", "Log lines lost because the log output was too slow.",
		server(Server.LogsDropped)},
	{"metrics_series_refused_total", counter, "", "Values not counted because their metric has too many label sets.",
		scraped(func(m *Metrics, f *Family) { f.Set(m.refused.Load()) })},
}

// byTransport sets the counts of each transport.
func byTransport(counts *[transport.NumKinds]atomic.Uint64, f *Family) {
	for c := range transport.NumKinds {
		f.Set(counts[c].Load(), c.String())
	}
}
