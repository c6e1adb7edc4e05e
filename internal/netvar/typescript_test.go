package netvar

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/netloop/netloop/internal/testing/nodetest"
	"github.com/netloop/netloop/internal/testing/refdecoder"
	"github.com/netloop/netloop/internal/testing/seeds"
)

// The reader in TypeScript (clients/ts/src/state), which is also written from docs/WIRE.md,
// receives the packets of the clients of random worlds. For each packet, damaged ones included, it
// has the same result as the plain reader.
func TestTypeScriptReaderAgrees(t *testing.T) { scriptSeeds(t, false) }

func TestTypeScriptReaderAgreesOnDamage(t *testing.T) { scriptSeeds(t, true) }

func scriptSeeds(t *testing.T, damage bool) {
	script := nodetest.Bundle(t, "test/worlds.ts")
	path := filepath.Join(t.TempDir(), "worlds")
	var all plainTally
	log := new(worldLog)
	read := func() {
		if err := os.WriteFile(path, log.b, 0o600); err != nil {
			t.Fatal(err)
		}
		t.Logf("%d bytes: %s", len(log.b), nodetest.Node(t, script, path))
		log.b = log.b[:0]
	}
	for seed := range seeds.Of(t, 50) {
		m := newPlainModel(t, seed, damage, &all)
		log.begin(t, m, seed)
		for range 40 + m.rng.IntN(80) {
			if err := m.step(); err != nil {
				t.Fatalf("seed %d, tick %d: %v", seed, m.tick, err)
			}
		}
		if len(log.b) > 32<<20 {
			read()
		}
	}
	read()
}

// worldLog is the input of clients/ts/test/worlds.ts. Numbers are little endian.
//
//	world   0 seed:u32 size:u32 SchemaTables
//	join    1 client:u32 tick:f64
//	packet  2 client:u32 size:u32 bytes outcome
//	record  3 the same
//	outcome kind:u8 whole:u8 digest:u8 versions:u32 sum:u64
type worldLog struct {
	b       []byte
	clients uint32
}

const (
	logWorld = iota
	logJoin
	logPacket
	logRecord
)

// begin starts the log of another world's clients.
func (l *worldLog) begin(tb testing.TB, m *plainModel, seed uint64) {
	tb.Helper()
	b, err := proto.Marshal(tablesOf(m.table))
	if err != nil {
		tb.Fatal(err)
	}
	l.b = append(l.b, logWorld)
	l.number(uint32(seed))
	l.bytes(b)
	m.log = l
	for _, c := range m.clients {
		l.join(c.pair)
	}
}

func (l *worldLog) number(n uint32) { l.b = binary.LittleEndian.AppendUint32(l.b, n) }

func (l *worldLog) bytes(b []byte) {
	l.number(uint32(len(b)))
	l.b = append(l.b, b...)
}

// join logs a new client of the world, as a reader without objects.
func (l *worldLog) join(q *plainPair) {
	l.clients++
	q.log, q.logged = l, l.clients
	l.b = append(l.b, logJoin)
	l.number(q.logged)
	l.b = binary.LittleEndian.AppendUint64(l.b, math.Float64bits(float64(q.plain.Tick)))
}

// received logs bytes that a client has received, and the resulting state of the plain reader.
func (l *worldLog) received(q *plainPair, entry byte, b []byte, res refdecoder.Result, err error) {
	if l == nil {
		return
	}
	l.b = append(l.b, entry)
	l.number(q.logged)
	l.bytes(b)
	kind, whole, digest := byte(3), byte(0), byte(0)
	switch {
	case err != nil:
		kind = 0
	case entry == logPacket && !res.Ack:
		kind = 1
	case res.Repeated:
		kind = 2
	}
	if res.Whole {
		whole, digest = 1, byte(res.Digest)
	}
	l.b = append(l.b, kind, whole, digest)
	versions := 0
	for _, o := range q.plain.Objects() {
		versions += len(o.Versions)
	}
	l.number(uint32(versions))
	l.b = binary.LittleEndian.AppendUint64(l.b, q.plain.Sum())
}
