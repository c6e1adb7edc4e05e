package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/netloop/netloop/bench/measure"
	"github.com/netloop/netloop/bench/tun"
	"github.com/netloop/netloop/internal/netem"
)

// outcome is the result of a cell.
type outcome struct {
	At   time.Time `json:"at"`
	Note string    `json:"note,omitempty"` // why the figures are invalid

	Window     float64 `json:"window_s"`
	Server     float64 `json:"server"`  // processor time, of a core
	Clients    float64 `json:"clients"` // processor time of their program
	Other      float64 `json:"other"`   // cores that other programs took
	Resident   float64 `json:"resident_mb"`
	PerClient  float64 `json:"client_kb"` // growth of the server's memory for each client
	Grown      float64 `json:"grown_mb"`  // growth of the server's memory in the window
	Bytes      float64 `json:"bytes"`     // of an update, as sockets deliver them
	Packets    float64 `json:"packets"`   // bytes of an update in whole IP packets: part path
	Up         float64 `json:"up"`        // bytes from the clients for each update, likewise
	Lost       int     `json:"lost"`      // clients whose connection ended
	Backlog    int     `json:"backlog"`   // updates that the stopped client got afterwards
	StillThere bool    `json:"still_there"`
	figures
}

// program is a made peer: its commands without their common arguments, and its version.
type program struct {
	serve, play []string
	version     string
}

// bench is one run of the program.
type bench struct {
	plan         plan
	about        io.Writer // progress
	dir          string    // for programs and files between them
	server, play int       // cores
	programs     map[string]program
	seed         uint64
}

// The limits of a valid window.
const (
	maxBusy    = 0.9   // of the clients' core: above it they queue
	maxOther   = 0.15  // cores of other programs
	maxLate    = 0.005 // the share of packets that the emulator delivered late
	joinPolls  = 10 * time.Millisecond
	startPause = 200 * time.Millisecond // of a server, before its memory is read
)

// place is where a cell's programs run.
type place struct {
	addr          string
	server, their func(*exec.Cmd) error // start a program
	link          *tun.Link             // nil on loopback
	close         func()
}

func (b *bench) place(c cell) (p place, err error) {
	if c.link == "" {
		addr, err := freeAddress()
		return place{addr: addr, server: measure.Pinned(b.server), their: measure.Pinned(b.play), close: func() {}}, err
	}
	spec, err := c.spec()
	if err != nil {
		return p, err
	}
	link, err := tun.Open(spec, b.seed)
	if err != nil {
		return p, err
	}
	return place{link.Server.Addr + ":4433", link.Server.Start, link.Clients.Start, link, link.Close}, nil
}

// freeAddress returns an address of which neither TCP nor UDP uses the port.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// command returns a program of a cell.
func command(prefix []string, addr string, c cell, more ...string) *exec.Cmd {
	args := append([]string{addr, strconv.Itoa(c.rate), c.world}, more...)
	return exec.Command(prefix[0], append(prefix[1:len(prefix):len(prefix)], args...)...)
}

// take measures a cell.
func (b *bench) take(ctx context.Context, c cell) (o outcome, err error) {
	at, err := b.place(c)
	if err != nil {
		return o, err
	}
	defer at.close()
	program := b.programs[c.peer.name]
	server, err := measure.Start(at.server, command(program.serve, at.addr, c))
	if err != nil {
		return o, err
	}
	defer server.Stop()
	if err := measure.Sleep(ctx, startPause); err != nil {
		return o, err
	}
	empty := measure.Resident(server.PID())
	players, err := b.players(ctx, at, c, c.clients)
	if err != nil {
		return o, fmt.Errorf("%w (server: %s)", err, gone(server))
	}
	defer players.stop()
	if err := measure.Sleep(ctx, b.plan.warmup); err != nil {
		return o, err
	}
	var stuck *group
	if c.part == silent {
		if stuck, err = b.players(ctx, at, c, 1); err != nil {
			return o, err
		}
		defer stuck.stop()
		if err := stuck.begin(); err != nil {
			return o, err
		}
		if err := measure.Sleep(ctx, startPause); err != nil {
			return o, err
		}
		stuck.Signal(measure.Pause)
	}
	o, err = b.window(ctx, c, at, server, players)
	if err != nil {
		return o, err
	}
	o.Resident = measure.Resident(server.PID()) / 1e6
	o.PerClient = (o.Resident*1e6 - empty) / float64(c.clients) / 1e3
	if stuck != nil {
		err = b.resume(ctx, stuck, &o)
	}
	return o, err
}

// gone describes a server that has ended, and is empty for others.
func gone(server *measure.Process) string {
	if server.Gone() {
		return server.Err().Error()
	}
	return "runs"
}

// reading is the state of the programs at a moment.
type reading struct {
	at                   time.Duration
	server, play, own    time.Duration
	resident, busy       float64
	down, up, late, sent uint64
}

func (b *bench) read(at place, server, play *measure.Process) (r reading, err error) {
	r.at = measure.Now()
	if r.server, err = measure.CPUTime(server.PID()); err != nil {
		return r, err
	}
	if r.play, err = measure.CPUTime(play.PID()); err != nil {
		return r, err
	}
	if r.own, err = measure.CPUTime(os.Getpid()); err != nil {
		return r, err
	}
	r.resident, r.busy = measure.Resident(server.PID()), busyCores()
	if at.link != nil {
		down, up := at.link.Counts(netem.Down), at.link.Counts(netem.Up)
		r.down, r.up = sum(down), sum(up)
		r.late, r.sent = down.Late+up.Late, down.Passed+up.Passed
	}
	return r, nil
}

func sum(c tun.Counts) (bytes uint64) {
	for _, n := range c.Bytes {
		bytes += n
	}
	return bytes
}

// window measures the programs over a window.
func (b *bench) window(ctx context.Context, c cell, at place, server *measure.Process, players *group) (o outcome, err error) {
	length := b.plan.windowOf(c)
	before, err := b.read(at, server, players.Process)
	if err != nil {
		return o, err
	}
	if err := players.begin(); err != nil {
		return o, err
	}
	if c.part == stalled {
		if err := measure.Sleep(ctx, time.Second); err != nil {
			return o, err
		}
		server.Signal(measure.Stall)
		length -= time.Second
	}
	if err := measure.Sleep(ctx, length); err != nil {
		return o, err
	}
	after, err := b.read(at, server, players.Process)
	if err != nil {
		return o, fmt.Errorf("%w (server: %s)", err, gone(server))
	}
	w, err := players.end(ctx)
	if err != nil {
		return o, err
	}
	took := after.at - before.at
	share := func(d time.Duration) float64 { return float64(d) / float64(took) }
	o.At, o.Window = time.Now().UTC().Truncate(time.Second), took.Seconds()
	o.Server, o.Clients = share(after.server-before.server), share(after.play-before.play)
	o.Other = max((after.busy-before.busy)/took.Seconds()-o.Server-o.Clients-share(after.own-before.own), 0)
	o.Grown = (after.resident - before.resident) / 1e6
	o.figures = analyse(w.records, c.clients, before.at, after.at)
	o.Lost = w.lost
	if n := float64(o.Updates); n > 0 {
		o.Bytes = float64(w.bytes) / n
		o.Packets, o.Up = float64(after.down-before.down)/n, float64(after.up-before.up)/n
	}
	late := float64(after.late-before.late) / float64(max(after.sent-before.sent, 1))
	switch {
	case w.wrong > 0 && c.part == loopback:
		return o, fmt.Errorf("a client had another state than the world's %d times", w.wrong)
	case o.Clients > maxBusy:
		o.Note = fmt.Sprintf("the clients took %.0f %% of their core", 100*o.Clients)
	case o.Other > maxOther:
		o.Note = fmt.Sprintf("other programs took %.0f %% of a core", 100*o.Other)
	case late > maxLate:
		o.Note = fmt.Sprintf("the emulator was late for %.1f %% of the packets", 100*late)
	}
	return o, nil
}

// resume lets the stopped client run again, and reads how the server has treated it.
func (b *bench) resume(ctx context.Context, stuck *group, o *outcome) error {
	from := measure.Now()
	stuck.Signal(measure.Resume)
	if err := measure.Sleep(ctx, time.Second); err != nil {
		return err
	}
	if stuck.Gone() {
		return nil
	}
	w, err := stuck.end(ctx)
	if err != nil {
		return err
	}
	f := analyse(w.records, 1, from, measure.Now())
	o.StillThere, o.Backlog, o.Oldest = w.lost == 0, f.Updates, f.Oldest
	return nil
}

// busyCores returns the processor time of the machine, in seconds.
func busyCores() (sum float64) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	for i, field := range strings.Fields(line) {
		switch n, err := strconv.ParseFloat(field, 64); {
		case err != nil, i == 4, i == 5, i > 8: // the name, idle, waiting, and guests again
		default:
			sum += n / 100 // Linux counts in hundredths of a second.
		}
	}
	return sum
}

// group is a running program of clients: see control.
type group struct {
	*measure.Process
	in    io.WriteCloser
	lines chan string // of its output
	file  string      // of its records
}

// players starts clients and waits until all of them have an update.
func (b *bench) players(ctx context.Context, at place, c cell, clients int) (*group, error) {
	cmd := command(b.programs[c.peer.name].play, at.addr, c, strconv.Itoa(clients))
	p := &group{lines: make(chan string), file: filepath.Join(b.dir, "records")}
	var err error
	if p.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	reader, writer := io.Pipe()
	cmd.Stdout = writer
	if p.Process, err = measure.Start(at.their, cmd); err != nil {
		return nil, err
	}
	go func() {
		<-p.Ended()
		_ = writer.Close()
	}()
	go func() {
		defer close(p.lines)
		for s := bufio.NewScanner(reader); s.Scan(); {
			p.lines <- s.Text()
		}
	}()
	if _, err := p.line(ctx, joinLimit+20*time.Second); err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

// line reads a line of the program.
func (p *group) line(ctx context.Context, limit time.Duration) (string, error) {
	select {
	case line, ok := <-p.lines:
		if !ok {
			<-p.Ended()
			return "", p.Err()
		}
		return line, nil
	case <-time.After(limit):
		return "", fmt.Errorf("%s does not answer", p.Name())
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

func (p *group) begin() error {
	_, err := io.WriteString(p.in, "begin\n")
	return err
}

// received is the report of a window.
type received struct {
	records     []record
	bytes       uint64
	lost, wrong int
}

func (p *group) end(ctx context.Context) (w received, err error) {
	if _, err := fmt.Fprintf(p.in, "end %s\n", p.file); err != nil {
		return w, err
	}
	line, err := p.line(ctx, 20*time.Second)
	if err != nil {
		return w, err
	}
	if _, err := fmt.Sscanf(line, "done %d %d %d", &w.bytes, &w.lost, &w.wrong); err != nil {
		return w, fmt.Errorf("%s answers %q: %w", p.Name(), line, err)
	}
	text, err := os.ReadFile(p.file)
	if err != nil {
		return w, err
	}
	w.records, err = readRecords(text)
	return w, err
}

func (p *group) stop() {
	p.Signal(measure.Resume)
	_ = p.in.Close()
	go func() { // Its last lines are not read.
		for range p.lines {
		}
	}()
	p.Stop()
}
