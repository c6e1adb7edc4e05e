package netloop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"path/filepath"
	"runtime"
	runtimemetrics "runtime/metrics"
	"slices"
	"strconv"
	"time"

	"github.com/netloop/netloop/internal/admin"
	"github.com/netloop/netloop/internal/build"
	"github.com/netloop/netloop/internal/directory"
	"github.com/netloop/netloop/internal/inspect"
	"github.com/netloop/netloop/internal/inspect/history"
	"github.com/netloop/netloop/internal/metrics"
	"github.com/netloop/netloop/internal/netem"
	"github.com/netloop/netloop/internal/recording"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/tracedump"
)

// The answers of the inspector: see package inspect.

// inspectorRoutes returns the page of the inspector and its part of the API.
func (s *Server) inspectorRoutes() []admin.Route {
	page := inspect.Page()
	return append([]admin.Route{
		{Path: "/inspect", Text: "the inspector, for a browser", Page: page},
		{Path: "/inspect/{file}", Text: "its files", Page: page},
		{Path: "/api/overview", Text: "the server: rate, percentiles of the last minutes, overload, memory", Answer: inspect.Overview{}, Read: s.overviewPage},
		{Path: "/api/metrics", Query: "?prefix=rpc&prefix=inputs", Text: "counters and gauges of /metrics by the start of their names, without netloop_", Answer: map[string][]metrics.Value{}, Read: s.valuesPage},
		{Path: "/api/clients", Query: "?room=lobby", Text: "the clients of a room: link, snapshots, inputs", Answer: inspect.Clients{}, Read: s.clientsPage},
		{Path: "/api/clients/traffic", Query: "?room=lobby&client=1", Text: "the bytes of one client by class and by method, both ways; counted from the first request on, until 10 s after the last", Answer: inspect.Traffic{}, Read: s.trafficPage},
		{Path: "/api/classes", Text: "the classes of objects: fields, types, read rules", Answer: []inspect.Class{}, Read: s.classesPage},
		{Path: "/api/state", Query: "?room=lobby&class=ship&client=1&find=17.3&after=17.3", Text: "objects with their values as of the last capture; with a client its acknowledged copy of each; fields with read rules need the role write", Answer: stateAnswer{}, Read: s.statePage},
		{Path: "/api/costs", Query: "?room=lobby", Text: "the ten objects whose records took the most bytes of the last minute; counted from the first request on, until 10 s after the last", Answer: inspect.Costs{}, Read: s.costsPage},
		{Path: "/api/waits", Query: "?room=lobby", Text: "how long messages of clients waited by method, from arrival to handler; counted from the first request on, until 10 s after the last", Answer: inspect.Waits{}, Read: s.waitsPage},
		{Path: "/api/cluster", Query: "?find=oak", Text: "the servers of the cluster, whether names can be claimed, and at most 1 000 of all rooms; find= selects those with the text in their name, kind or server", Answer: inspect.Cluster{}, Read: s.clusterPage},
		{Path: "/api/log", Query: "?after=100", Text: "the last 1 024 log lines, or those after a line", Answer: []inspect.LogLine{}, Read: s.logPage},
		{Path: "/api/clients/kick", Query: "?room=lobby&client=1&text=...", Text: "closes the connection of a client", Act: s.kickPage},
		{Path: "/api/clients/simulate", Query: "?room=lobby&client=1&network=rtt=150ms,jitter=20ms,loss=5%25", Text: "puts an emulated network around the connection of a client until it ends; an empty one removes it", Act: s.simulatePage},
		{Path: "/api/systems/disable", Query: "?room=lobby&system=ai.think", Text: "keeps a system or group from running, from the next tick on", Act: s.systemPage(recording.Disable, "is disabled")},
		{Path: "/api/systems/enable", Query: "?room=lobby&system=ai.think", Text: "lets it run again", Act: s.systemPage(recording.Enable, "is enabled")},
		{Path: "/api/rooms/lock", Query: "?room=lobby", Text: "keeps new clients out of a room", Act: s.lockPage(recording.Lock, "is locked")},
		{Path: "/api/rooms/unlock", Query: "?room=lobby", Text: "admits new clients again", Act: s.lockPage(recording.Unlock, "is unlocked")},
	}, slices.Concat(s.traceRoutes(), s.keptRoutes(), s.recordingRoutes())...)
}

// The numbers of stream periods, of 250 ms, between two events of a topic.
const (
	everyQuarter = 1
	everyHalf    = 2
	everySecond  = 4
)

// topics returns the topics of the inspector's live data. Each topic has the content of a page.
func (s *Server) topics() map[string]admin.Topic {
	type reader = func(context.Context, url.Values) (any, error)
	whole := func(rounds int, page string, read reader) admin.Topic {
		return admin.Topic{Page: page, Rounds: rounds, Next: func(ctx context.Context, q url.Values, _ *uint64) (any, error) { return read(ctx, q) }}
	}
	return map[string]admin.Topic{
		"overview": whole(everySecond, "/api/overview", s.overviewPage),
		"payloads": whole(everyHalf, "/api/payloads", s.payloadsPage),
		"rooms": whole(everySecond, "/rooms", func(ctx context.Context, _ url.Values) (any, error) {
			return s.roomsPage(ctx, url.Values{"limit": {strconv.Itoa(directory.MaxRows)}})
		}),
		"metrics": whole(everySecond, "/api/metrics", s.valuesPage),
		"loop":    whole(everySecond, "/loop", s.loopPage),
		"clients": whole(everySecond, "/api/clients", s.clientsPage),
		"costs":   whole(everySecond, "/api/costs", s.costsPage),
		"traffic": whole(everySecond, "/api/clients/traffic", s.trafficPage),
		"waits":   whole(everySecond, "/api/waits", s.waitsPage),
		"cluster": whole(everySecond, "/api/cluster", s.clusterPage),
		"state":   whole(everyHalf, "/api/state", s.statePage),
		"ticks":   {Page: "/ticks/last", Rounds: everyQuarter, Next: s.nextTicks},
		"log":     {Page: "/api/log", Rounds: everyQuarter, Next: s.nextLines},
	}
}

// nextTicks returns the ticks of a room that an event stream has not sent yet.
func (s *Server) nextTicks(_ context.Context, query url.Values, last *uint64) (any, error) {
	log, err := s.ticksOf(query)
	if err != nil {
		return nil, err
	}
	report := log.After(*last)
	if len(report.Ticks) == 0 {
		return nil, nil
	}
	*last = report.Ticks[len(report.Ticks)-1].Tick
	return report, nil
}

// nextLines returns the log lines that an event stream has not sent yet.
func (s *Server) nextLines(_ context.Context, _ url.Values, last *uint64) (any, error) {
	lines := s.lines.After(*last)
	if len(lines) == 0 {
		return nil, nil
	}
	*last = lines[len(lines)-1].Number
	return lines, nil
}

// logPage answers /api/log.
func (s *Server) logPage(_ context.Context, query url.Values) (any, error) {
	after, err := number(query, "after", 0)
	if err != nil {
		return nil, err
	}
	return s.lines.After(after), nil
}

// number returns the value of a parameter that must be a whole number, or an *admin.Refusal. If the
// query lacks it, the value is without.
func number(query url.Values, name string, without uint64) (uint64, error) {
	if !query.Has(name) {
		return without, nil
	}
	n, err := strconv.ParseUint(query.Get(name), 10, 64)
	if err != nil {
		return 0, admin.Refuse(http.StatusBadRequest, "%s: %.40q is not a whole number", name, query.Get(name))
	}
	return n, nil
}

// readMemory reads the figures of the Go runtime. It takes some microseconds.
func readMemory() inspect.Memory {
	samples := []runtimemetrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
		{Name: "/gc/cycles/total:gc-cycles"}, {Name: "/cpu/classes/gc/total:cpu-seconds"}, {Name: "/cpu/classes/total:cpu-seconds"},
	}
	runtimemetrics.Read(samples)
	m := inspect.Memory{Goroutines: runtime.NumGoroutine()}
	for i, to := range []*uint64{&m.Heap, &m.Total, nil, &m.Cycles} {
		if to != nil && samples[i].Value.Kind() == runtimemetrics.KindUint64 {
			*to = samples[i].Value.Uint64()
		}
	}
	if v := samples[2].Value; v.Kind() == runtimemetrics.KindUint64 {
		m.Total -= v.Uint64()
	}
	if v := samples[4].Value; v.Kind() == runtimemetrics.KindFloat64 {
		m.GC = v.Float64()
	}
	if v := samples[5].Value; v.Kind() == runtimemetrics.KindFloat64 {
		m.CPU = v.Float64()
	}
	return m
}

// overviewPage answers /api/overview.
func (s *Server) overviewPage(ctx context.Context, _ url.Values) (any, error) {
	uptime, hertz := s.metrics.Pace()
	loaded := s.overloaded()
	o := inspect.Overview{
		Game: s.schema.s.Name, Version: build.Version(), Instance: fmt.Sprintf("%x", s.instance), Room: s.room.spec.Name, Time: s.clock.Wall(),
		Uptime: uptime.Seconds(), Rate: hertz, Overload: loaded.Overload().String(), Ladder: inspect.NewLadder(loaded.spec.Name, loaded.e.Load.Facts()), Rooms: len(s.rooms.All()), Budget: s.room.spec.Rate.Period(), Windows: s.metrics.Windows(), Write: admin.MayWrite(ctx), Ring: s.cfg.InspectRing, Cluster: s.ID(), Memory: readMemory(),
	}
	note, err := s.readiness()
	if err != nil {
		o.Ready = err.Error()
	}
	o.Note = note
	if note, _ := s.health(); note != "" {
		o.Note = note
	}
	return o, nil
}

// maxPrefixes limits the prefixes of a query for values.
const maxPrefixes = 16

// valuesPage answers /api/metrics.
func (s *Server) valuesPage(_ context.Context, query url.Values) (any, error) {
	prefixes := query["prefix"]
	if len(prefixes) == 0 || len(prefixes) > maxPrefixes {
		return nil, admin.Refuse(http.StatusBadRequest, "prefix: give 1 to %d starts of names in /metrics, without netloop_, such as prefix=rpcs", maxPrefixes)
	}
	return s.metrics.Values(prefixes...), nil
}

// clientsPage answers /api/clients.
func (s *Server) clientsPage(ctx context.Context, query url.Values) (any, error) {
	r, err := s.queriedRoom(query)
	if err != nil {
		return nil, err
	}
	return r.e.Questions.Ask(ctx, func(tick uint64) any {
		all := r.e.Clients()
		list := inspect.Clients{Tick: tick, Clients: make([]inspect.Client, 0, min(len(all), maxListed)), More: max(0, len(all)-maxListed)}
		waiting := r.e.Messages.Waiting()
		for _, c := range all[:min(len(all), maxListed)] {
			row := r.clientRow(c)
			row.Waiting = waiting[row.Client]
			list.Clients = append(list.Clients, row)
		}
		return list
	})
}

// waitNames are the names of the reasons why a client gets no snapshot, as in
// netloop_snapshots_deferred_total.
var waitNames = [...]string{room.WaitsForNothing: "", room.WaitsForSlot: "slot_busy", room.WaitsForWindow: "window_closed"}

// clientRow describes a client, on the room's goroutine.
func (r *Room) clientRow(c *room.Client) inspect.Client {
	link, counts := clientOf(c).Link(), c.Counts()
	row := inspect.Client{
		Client: c.ID(), Subject: listedSubject(c.Join().Subject), Addr: c.Join().Addr, Transport: c.Transport(), State: "connected",
		Age: r.now.GameTime - c.JoinedAt(), Silent: link.Silent, RTT: link.RTT, InFlight: link.InFlight, Window: link.Window, Waits: waitNames[c.Waits()],
		Snapshots: counts.Snapshots, Bytes: counts.Bytes, SlotBusy: counts.SlotBusy, WindowClosed: counts.WindowClosed,
		Inputs: link.Inputs, InputsMissed: link.InputsMissed, InputsLate: link.InputsLate, InputMargin: link.InputMargin,
		Rewind: link.Rewind, ViewsClamped: link.ViewsClamped, Mispredicted: link.Mispredicted, Simulated: c.Simulated(),
	}
	f := c.Figures()
	row.Received, row.Sent, row.QueuedBytes, row.QueuedMessages = f.Received, f.Sent, f.Reliable, f.Unreliable
	if f.Measured {
		row.Loss = new(float64(f.Loss) / 1000)
	}
	if f.Acked {
		row.AckAge = &f.AckAge
	}
	switch {
	case c.Dropped():
		row.State = "dropped"
	case !c.Connected() && !c.IsFeed():
		row.State = "leaving"
	}
	return row
}

// command executes an operator's command in the room that a query names.
func (s *Server) command(ctx context.Context, query url.Values, cmd recording.Command) error {
	r, err := s.queriedRoom(query)
	if err != nil {
		return err
	}
	if err := r.e.Commands.Execute(ctx, cmd); err != nil {
		return admin.Refuse(http.StatusConflict, "%v", err)
	}
	return nil
}

// kickPage answers /api/clients/kick.
func (s *Server) kickPage(ctx context.Context, query url.Values) (string, error) {
	id, err := number(query, "client", 0)
	if err != nil {
		return "", err
	}
	text := query.Get("text")
	if text == "" {
		text = "removed by the operator"
	}
	if err := s.command(ctx, query, recording.Command{Kind: recording.Kick, Client: id, Code: uint32(CodeKicked), Text: text}); err != nil {
		return "", err
	}
	return fmt.Sprintf("client %d is removed", id), nil
}

// simulatePage answers /api/clients/simulate. The network is no command of the room: a recording
// has the arrivals, which the network has delayed already.
func (s *Server) simulatePage(ctx context.Context, query url.Values) (string, error) {
	id, err := number(query, "client", 0)
	if err != nil {
		return "", err
	}
	spec, err := netem.Parse(query.Get("network"))
	if err != nil {
		return "", admin.Refuse(http.StatusBadRequest, "network: %v", err)
	}
	for _, w := range spec.Ways {
		if w.Corrupt != 0 || w.Hole != (netem.Hole{}) || spec.Rebind != 0 {
			return "", admin.Refuse(http.StatusBadRequest, "network: corrupt, hole and rebind need --simulate; give rtt, delay, jitter, loss, dup, reorder, rate and buffer")
		}
	}
	r, err := s.queriedRoom(query)
	if err != nil {
		return "", err
	}
	v, err := r.e.Questions.Ask(ctx, func(uint64) any {
		c, ok := r.e.Client(id)
		switch {
		case !ok:
			return admin.Refuse(http.StatusNotFound, "there is no client %d; %s", id, r.someClients())
		case !c.Simulate(spec.String()):
			return admin.Refuse(http.StatusConflict, "client %d has no connection", id)
		}
		return nil
	})
	if refusal, ok := v.(error); ok {
		return "", refusal
	}
	if err != nil {
		return "", err
	}
	if spec == (netem.Spec{}) {
		return fmt.Sprintf("client %d has its own network", id), nil
	}
	return fmt.Sprintf("client %d has the network %v, until its connection ends", id, spec), nil
}

// systemPage returns the answer of a command to a system.
func (s *Server) systemPage(kind recording.CommandKind, done string) func(context.Context, url.Values) (string, error) {
	return func(ctx context.Context, query url.Values) (string, error) {
		name := query.Get("system")
		if name == "" {
			return "", admin.Refuse(http.StatusBadRequest, "system: give the name of a system or group, as /loop lists them")
		}
		if err := s.command(ctx, query, recording.Command{Kind: kind, System: name}); err != nil {
			return "", err
		}
		return fmt.Sprintf("%s %s", name, done), nil
	}
}

// lockPage returns the answer of a command to a room.
func (s *Server) lockPage(kind recording.CommandKind, done string) func(context.Context, url.Values) (string, error) {
	return func(ctx context.Context, query url.Values) (string, error) {
		if err := s.command(ctx, query, recording.Command{Kind: kind}); err != nil {
			return "", err
		}
		return "the room " + done, nil
	}
}

// The past ticks of running rooms, which the inspector shows as it shows a recording.

// keepTicks begins to keep the ticks of a room that has run none, with Config.InspectRing.
func (s *Server) keepTicks(r *Room) {
	if s.rings != nil {
		head, err := r.head()
		if err != nil { // The ticks can be shown, but a file of them cannot be opened.
			s.log.Warn("the kept ticks of a room cannot be saved", "room", r.spec.Name, "error", err)
		}
		head.Seed = 0 // The seed of a running room stays secret.
		r.ring = s.rings.Open(r.e, head)
	}
}

// keptRoutes returns the pages of past ticks.
func (s *Server) keptRoutes() []admin.Route {
	return append([]admin.Route{
		{Path: "/api/recording/last", Query: "?room=lobby", Text: "copies the past ticks of a room that are in memory, also of a room that has ended in the last 10 minutes, for the pages of /api/recording; the last 4 copies are kept", Answer: history.Taken{}, Act: s.lastTicksPage, ByReaders: true},
		{Path: "/api/recording/past", Text: "these copies, and the ended rooms", Answer: history.PastAnswer{}, Read: s.pastPage},
		{Path: "/api/recording/file", Query: "?past=1", Text: "a copy as a file, for server inspect", Page: http.HandlerFunc(s.keptFile), ByWriters: true},
	}, s.copies.Routes()...)
}

// keptFileTimeout bounds the download of kept ticks, which have some MiB, and of each part of a
// recording.
const keptFileTimeout = time.Minute

// keptFile answers /api/recording/file.
func (s *Server) keptFile(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).SetWriteDeadline(s.clock.Wall().Add(keptFileTimeout))
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", "attachment; filename=ticks.rec")
	err := s.copies.Export(w, r.URL.Query())
	var refusal *admin.Refusal
	switch {
	case errors.As(err, &refusal): // Nothing has been written.
		w.Header().Del("Content-Disposition")
		http.Error(w, refusal.Text, refusal.Status)
	case err != nil: // The client sees that the file is truncated.
		s.log.Warn("the kept ticks were not sent", "error", err)
	}
}

// lastTicksPage answers /api/recording/last.
func (s *Server) lastTicksPage(_ context.Context, query url.Values) (string, error) {
	if s.rings == nil {
		return "", admin.Refuse(http.StatusNotFound, "no past ticks are kept: start the server with --inspect-ring 60s")
	}
	r, err := s.queriedRoom(query)
	var ring *history.Ring
	if err == nil {
		ring = r.ring
	} else if ended, ok := s.rings.Ended(query.Get("room")); ok {
		ring = ended
	} else {
		return "", err
	}
	taken, err := s.copies.Take(ring)
	if err != nil {
		return "", err
	}
	b, err := json.Marshal(taken)
	return string(b), err
}

// pastPage answers /api/recording/past.
func (s *Server) pastPage(context.Context, url.Values) (any, error) {
	a := history.PastAnswer{Copies: s.copies.Rows(), Ended: []history.EndedRow{}}
	if s.rings != nil {
		a.Ended = s.rings.EndedRows()
	}
	return a, nil
}

// The recordings in Config.RecordingDirs.

// recordingRoutes returns the pages of recordings in files.
func (s *Server) recordingRoutes() []admin.Route {
	return []admin.Route{
		{Path: "/api/recordings", Text: "the recordings in the folders of --record and --record-rooms", Answer: history.SavedAnswer{}, Read: s.recordingsPage},
		{Path: "/api/recordings/file", Query: "?folder=0&name=game.rec", Text: "one of them, with all data of its clients, also their tokens", Page: http.HandlerFunc(s.recordingFile), ByWriters: true},
	}
}

// folders returns the folders of recordings.
func (s *Server) folders() *history.Folders {
	return &history.Folders{Dirs: s.cfg.RecordingDirs, Game: s.schema.s.Name, RoomOf: func(head recording.Head) string {
		var config recordedConfig
		if json.Unmarshal(head.Config, &config) != nil {
			return ""
		}
		return config.Room.Name
	}}
}

// recordingsPage answers /api/recordings.
func (s *Server) recordingsPage(context.Context, url.Values) (any, error) { return s.folders().List() }

// recordingFile answers /api/recordings/file, and leaves a line in the log.
func (s *Server) recordingFile(w http.ResponseWriter, r *http.Request) {
	f, err := s.folders().Open(r.URL.Query())
	var refusal *admin.Refusal
	switch {
	case errors.As(err, &refusal):
		http.Error(w, refusal.Text, refusal.Status)
		return
	case err != nil:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer func() { _ = f.Close() }() // It was only read.
	s.log.Info("a recording is downloaded", "file", f.Name(), "token", admin.TokenName(r.Context()), "from", admin.From(r.Context()))
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": filepath.Base(f.Name())}))
	http.ServeContent(&renewing{w, s.clock.Wall}, r, "", time.Time{}, f)
}

// renewing is a ResponseWriter whose deadline is a minute after each write, for files whose
// download takes longer than other pages.
type renewing struct {
	http.ResponseWriter
	now func() time.Time
}

// Write implements io.Writer.
func (w *renewing) Write(b []byte) (int, error) {
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(w.now().Add(keptFileTimeout))
	return w.ResponseWriter.Write(b)
}

// The execution traces of slow ticks, which Config.TraceDir has.

// traceList is the answer of /api/traces. A trace also has the ticks of the time before its tick.
type traceList struct {
	Room   string           `json:"room"`      // the default room
	Covers time.Duration    `json:"covers_ns"` // time before its tick that a trace has
	Traces []tracedump.File `json:"traces"`    // stored files
}

// traceRoutes returns the pages of traces.
func (s *Server) traceRoutes() []admin.Route {
	return []admin.Route{
		{Path: "/api/traces", Text: "the execution traces of slow ticks of the default room, with --trace-dir", Answer: traceList{}, Read: s.tracesPage},
		{Path: "/api/traces/file", Query: "?tick=977", Text: "one of them, for go tool trace", Page: http.HandlerFunc(s.traceFile), ByWriters: true},
	}
}

// tracesPage answers /api/traces.
func (s *Server) tracesPage(context.Context, url.Values) (any, error) {
	l := traceList{Room: s.room.spec.Name, Covers: tracedump.Covers, Traces: []tracedump.File{}}
	if s.traces != nil {
		l.Traces = append(l.Traces, s.traces.Files()...)
	}
	return l, nil
}

// traceTimeout bounds the download of a trace, which has some MiB.
const traceTimeout = time.Minute

// traceFile answers /api/traces/file.
func (s *Server) traceFile(w http.ResponseWriter, r *http.Request) {
	tick, err := number(r.URL.Query(), "tick", 0)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	err = fs.ErrNotExist
	if s.traces != nil {
		err = s.serveTrace(w, r, tick)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		http.Error(w, fmt.Sprintf("there is no trace of tick %d: /api/traces lists them", tick), http.StatusNotFound)
	case err != nil:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
}

func (s *Server) serveTrace(w http.ResponseWriter, r *http.Request, tick uint64) error {
	f, err := s.traces.OpenFile(tick)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // It was only read.
	_ = http.NewResponseController(w).SetWriteDeadline(s.clock.Wall().Add(traceTimeout))
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=tick%d.trace", tick))
	http.ServeContent(w, r, "", time.Time{}, f)
	return nil
}
