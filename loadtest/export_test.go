package loadtest

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
)

// Execute is Main without the process. args[0] is the program's name.
var Execute = execute

func execute(ctx context.Context, args []string, stdout, stderr io.Writer, b Bot) int {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	return (&program{args: args, stdout: stdout, stderr: stderr, interrupt: stop, bot: b}).execute(ctx)
}

// ExecuteOnTerminal is Execute with keys from stdin, and with stderr as a terminal.
func ExecuteOnTerminal(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, b Bot) int {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	return (&program{args: args, stdin: stdin, stdout: stdout, stderr: stderr, terminal: true, env: []string{"TERM=xterm"}, interrupt: stop, bot: b}).execute(ctx)
}

// Samples reads the text of /metrics.
func Samples(text string) map[string]float64 { return parseSamples(text) }

// schemaFile is the JSON Schema of results.
const schemaFile = "result.schema.json"

// Fits returns an error unless a text is the JSON of a result by schemaFile.
func Fits(text []byte) error {
	file, err := os.ReadFile(schemaFile)
	if err != nil {
		return err
	}
	var (
		schema   jsonschema.Schema
		instance any
	)
	if err := json.Unmarshal(file, &schema); err != nil {
		return err
	}
	whole, err := schema.Resolve(nil)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &instance); err != nil {
		return err
	}
	return whole.Validate(instance)
}

// Rehearsal lets bots play outside of a load test, and records their figures of [Feel].
type Rehearsal struct {
	worker  *worker
	clients int
	now     func() time.Duration
	from    time.Duration
}

// NewRehearsal makes a Rehearsal. now is the clock of its measurements.
func NewRehearsal(now func() time.Duration) *Rehearsal {
	r := &Rehearsal{worker: newWorker(&run{}), now: now}
	r.worker.run.window.open(math.MaxInt64, math.MaxInt64)
	return r
}

// Play lets a bot play a client. truth is the server's game time. All callbacks run on the
// goroutine of the client's frames.
func (r *Rehearsal) Play(b Bot, c *client.Client, truth func() time.Duration) {
	r.clients++
	n := r.clients
	m := &Meter{n: n, rand: rand.New(rand.NewPCG(1, uint64(n))), client: c, worker: r.worker}
	m.offset = c.Now() - r.now()
	was := c.Stats()
	c.On(netloop.PostLateUpdate, "loadtest.feel", func(t *netloop.Tick) {
		s := c.Stats()
		if m.worker.run.window.holds(r.now()) {
			f := r.worker.rec.feel
			f.frame(&s, &was)
			record(f.clock, (t.GameTime() - truth()).Abs())
		}
		was = s
	})
	b.Start(c, m)
}

// Begin begins the measurement.
func (r *Rehearsal) Begin() { r.from = r.now(); r.worker.run.window.open(r.from, math.MaxInt64) }

// End returns the figures of all bots of some rehearsals.
func End(all ...*Rehearsal) Feel {
	sum, clients := newFeelRecorder(), 0
	for _, r := range all {
		sum.merge(r.worker.rec.feel)
		clients += r.clients
	}
	return sum.result(clients, all[0].now()-all[0].from)
}
