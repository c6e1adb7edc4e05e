package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// record is an update that a client has received. It takes 24 bytes in the file of a client
// program.
type record struct {
	Client uint32
	Tick   uint32
	Sent   int64 // by the server, on the machine's clock; 0 if another record of the tick has it
	At     int64 // received; 0 is a record with the server's time alone
}

const recordSize = 24

// readRecords decodes the file of a clients' program.
func readRecords(b []byte) ([]record, error) {
	if len(b)%recordSize != 0 {
		return nil, fmt.Errorf("the records have %d bytes, want a multiple of %d", len(b), recordSize)
	}
	all := make([]record, len(b)/recordSize)
	_, err := binary.Decode(b, binary.LittleEndian, all)
	return all, err
}

func writeRecords(file string, all []record) error {
	b, err := binary.Append(nil, binary.LittleEndian, all)
	if err != nil {
		return err
	}
	return os.WriteFile(file, b, 0o600)
}

// allDecode is the number of clients up to which all of them decode the state. Of more clients,
// only the first decodes it, and the others read only the tick of an update: two cores have no
// room for the decoding of 400 clients.
const allDecode = 50

// clientArgs are the arguments of every clients' program.
type clientArgs struct {
	serverArgs
	clients int
}

// decodes reports whether a client decodes the state.
func (a *clientArgs) decodes(client int) bool { return a.clients <= allDecode || client == 0 }

// recorder has the records of the clients of a program. Its methods may be called from any
// goroutine.
type recorder struct {
	mu      sync.Mutex
	records []record
	bytes   uint64          // that the clients' sockets have read
	started map[uint32]bool // clients with an update
	lost    map[uint32]bool // clients whose connection ended
	wrong   int             // updates of which the state was not the world's
}

func newRecorder() *recorder {
	return &recorder{started: map[uint32]bool{}, lost: map[uint32]bool{}}
}

// update adds an update of a client. A sent of 0 is unknown.
func (r *recorder) update(client int, tick uint32, sent, at time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.started[uint32(client)] = true
	r.records = append(r.records, record{uint32(client), tick, int64(sent), int64(at)})
}

// stamp adds the server's time of a tick.
func (r *recorder) stamp(tick uint32, sent time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records = append(r.records, record{Tick: tick, Sent: int64(sent)})
}

// read counts bytes of a socket.
func (r *recorder) read(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bytes += uint64(n)
}

// lose counts a client whose connection has ended.
func (r *recorder) lose(client int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost[uint32(client)] = true
}

// differs counts an update with another state than the world's.
func (r *recorder) differs() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wrong++
}

func (r *recorder) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records, r.bytes, r.wrong = r.records[:0], 0, 0
}

func (r *recorder) playing() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.started)
}

// finish writes the records, and returns the last line of a window: see control.
func (r *recorder) finish(file string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	line := fmt.Sprintf("done %d %d %d", r.bytes, len(r.lost), r.wrong)
	return line, writeRecords(file, r.records)
}

// joinLimit bounds the time until all clients have their first update.
const joinLimit = 90 * time.Second

// control obeys the measurement: a clients' program of any language prints `ready` when all clients
// have an update, and then reads lines from its standard input:
//
//	begin      forget all records
//	end FILE   write the records to the file, print `done BYTES LOST WRONG`
//
// It ends with its input.
func control(in io.Reader, out io.Writer, clients int, r *recorder) error {
	for began := time.Now(); r.playing() < clients; time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > joinLimit {
			return fmt.Errorf("%d of %d clients have an update", r.playing(), clients)
		}
	}
	fmt.Fprintln(out, "ready")
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		switch word, file, _ := strings.Cut(lines.Text(), " "); word {
		case "begin":
			r.clear()
		case "end":
			line, err := r.finish(file)
			if err != nil {
				return err
			}
			fmt.Fprintln(out, line)
		}
	}
	return lines.Err()
}

// dialAll dials all clients, several at a time.
func dialAll(clients int, dial func(ctx context.Context, n int) error) error {
	const together = 10
	var wait sync.WaitGroup
	turns, errs := make(chan struct{}, together), make([]error, clients)
	for n := range clients {
		turns <- struct{}{}
		wait.Go(func() {
			if err := patiently(func(ctx context.Context) error { return dial(ctx, n) }); err != nil {
				errs[n] = fmt.Errorf("client %d: %w", n, err)
			}
			<-turns
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

// patiently dials until it succeeds: the server may not listen yet.
func patiently(dial func(context.Context) error) error {
	const limit, try = 60 * time.Second, 20 * time.Second
	var errs []error
	for began := time.Now(); time.Since(began) < limit; time.Sleep(50 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), try)
		err := dial(ctx)
		cancel()
		if err == nil {
			return nil
		}
		errs = append(errs[:min(len(errs), 1)], err) // The first and the last.
	}
	return errors.Join(slices.Compact(errs)...)
}
