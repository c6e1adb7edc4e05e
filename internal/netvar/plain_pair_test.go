package netvar

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/testing/refdecoder"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// plainTables returns the SchemaTables of a table's classes as bytes.
func plainTables(tb testing.TB, table *state.Table) []refdecoder.Class {
	tb.Helper()
	b, err := proto.Marshal(tablesOf(table))
	if err != nil {
		tb.Fatal(err)
	}
	classes, err := refdecoder.ReadTables(b)
	if err != nil {
		tb.Fatal(err)
	}
	return classes
}

func tablesOf(table *state.Table) *netloopv1.SchemaTables {
	tables := new(netloopv1.SchemaTables)
	for _, c := range table.Classes() {
		layout := c.Layout()
		tables.Classes = append(tables.Classes, &netloopv1.ClassTable{Name: c.Name(), Fields: plainType(&layout).GetFields()})
	}
	return tables
}

var plainKinds = map[codec.Kind]netloopv1.TypeKind{
	codec.Bool: netloopv1.TypeKind_TYPE_KIND_BOOL, codec.Int8: netloopv1.TypeKind_TYPE_KIND_INT8, codec.Int16: netloopv1.TypeKind_TYPE_KIND_INT16,
	codec.Int32: netloopv1.TypeKind_TYPE_KIND_INT32, codec.Int64: netloopv1.TypeKind_TYPE_KIND_INT64, codec.Uint8: netloopv1.TypeKind_TYPE_KIND_UINT8,
	codec.Uint16: netloopv1.TypeKind_TYPE_KIND_UINT16, codec.Uint32: netloopv1.TypeKind_TYPE_KIND_UINT32, codec.Uint64: netloopv1.TypeKind_TYPE_KIND_UINT64,
	codec.Float32: netloopv1.TypeKind_TYPE_KIND_FLOAT32, codec.Float64: netloopv1.TypeKind_TYPE_KIND_FLOAT64,
	codec.Quant32: netloopv1.TypeKind_TYPE_KIND_FLOAT32, codec.Quant64: netloopv1.TypeKind_TYPE_KIND_FLOAT64,
	codec.Range32: netloopv1.TypeKind_TYPE_KIND_RANGE32, codec.Range64: netloopv1.TypeKind_TYPE_KIND_RANGE64,
	codec.Quat: netloopv1.TypeKind_TYPE_KIND_QUAT, codec.RefKind: netloopv1.TypeKind_TYPE_KIND_REF, codec.InstantKind: netloopv1.TypeKind_TYPE_KIND_INSTANT,
	codec.String: netloopv1.TypeKind_TYPE_KIND_STRING, codec.Bytes: netloopv1.TypeKind_TYPE_KIND_BYTES, codec.ByteArray: netloopv1.TypeKind_TYPE_KIND_BYTE_ARRAY,
	codec.Slice: netloopv1.TypeKind_TYPE_KIND_SLICE, codec.Map: netloopv1.TypeKind_TYPE_KIND_MAP, codec.Proto: netloopv1.TypeKind_TYPE_KIND_PROTO,
	codec.Array: netloopv1.TypeKind_TYPE_KIND_ARRAY, codec.Struct: netloopv1.TypeKind_TYPE_KIND_STRUCT,
}

func plainType(t *codec.Type) *netloopv1.Type {
	w := &netloopv1.Type{Kind: plainKinds[t.Kind], Max: uint32(t.Max), StepNum: t.Num, StepDen: t.Den, Low: t.Low, High: t.High, Proto: t.Proto}
	if t.Elem != nil {
		w.Element = plainType(t.Elem)
	}
	for i := range t.Fields {
		w.Fields = append(w.Fields, &netloopv1.FieldTable{Name: t.Fields[i].Name, Type: plainType(&t.Fields[i].Type)})
	}
	return w
}

// plainPair is a client with two readers: the real one, and the one written from docs/WIRE.md.
type plainPair struct {
	real  *replica.Replica
	plain *refdecoder.Reader
	// taken is set once both have accepted a damaged packet. Then numbers may have more bytes than
	// needed, which the real reader stores and hashes as they are, and steps may be no exact
	// float32.
	taken bool

	log    *worldLog // nil = none
	logged uint32    // its number in the log
}

func newPlainPair(table *state.Table, classes []refdecoder.Class, tick uint64) *plainPair {
	q := &plainPair{real: replica.New(table), plain: refdecoder.NewReader(classes, tick)}
	q.real.StartAt(tick)
	return q
}

// apply passes a packet to both readers, and compares the results.
func (q *plainPair) apply(packet []byte) (replica.Applied, refdecoder.Result, error) {
	a, realErr := q.real.Apply(packet)
	res, plainErr := q.plain.Apply(packet)
	q.log.received(q, logPacket, packet, res, plainErr)
	if (realErr == nil) != (plainErr == nil) {
		return a, res, fmt.Errorf("the real reader says %w, the plain one %w", realErr, plainErr)
	}
	if realErr != nil {
		return a, res, q.same(nil)
	}
	if a.Packet != res.ID || a.Tick != res.Tick || a.Ack != res.Ack || a.SnapshotComplete != res.Whole {
		return a, res, fmt.Errorf("the real reader says %+v, the plain one %+v", a, res)
	}
	if a.SnapshotComplete && (uint64(a.Left) != res.Left || uint64(a.Total) != res.Total || a.Reached != a.Tick-min(res.Behind, a.Tick)) {
		return a, res, fmt.Errorf("the real reader says %+v, the plain one %+v", a, res)
	}
	if err := q.same(res.Events); err != nil {
		return a, res, err
	}
	if d, _ := q.real.Digest(); res.Whole && !res.Repeated && !q.taken && int(d) != int(res.Digest) {
		return a, res, fmt.Errorf("the real reader compares the digest as %d, the plain one %x with %x as %d", d, res.Got, res.Want, res.Digest)
	}
	return a, res, nil
}

// applyLarge does the same with a record from the stream.
func (q *plainPair) applyLarge(record []byte) (id uint64, err error) {
	id, realErr := q.real.ApplyLarge(record)
	other, events, plainErr := q.plain.ApplyLarge(record)
	q.log.received(q, logRecord, record, refdecoder.Result{}, plainErr)
	if (realErr == nil) != (plainErr == nil) || realErr == nil && id != other {
		return id, fmt.Errorf("record %d: the real reader says %w, the plain one %w", id, realErr, plainErr)
	}
	return id, q.same(events)
}

// same compares the state of both readers, and the spawns and despawns since the last comparison.
func (q *plainPair) same(events []refdecoder.Event) error {
	var real, want []string
	for _, e := range q.real.Events() {
		if e.Kind != replica.Change {
			real = append(real, fmt.Sprintf("%v %x", e.Kind == replica.Spawn, uint64(e.Object.ID())))
		}
	}
	for _, e := range events {
		want = append(want, fmt.Sprintf("%v %x", e.Spawn, e.Object.ID))
	}
	if fmt.Sprint(real) != fmt.Sprint(want) {
		return fmt.Errorf("events %v, of the plain reader %v", real, want)
	}
	objects := q.plain.Objects()
	n := 0
	for slot, o := range q.real.Objects().Slots {
		if o == nil {
			continue
		}
		if n == len(objects) {
			return fmt.Errorf("%x is not in the plain reader", uint64(o.ID()))
		}
		if err := q.sameObject(slot, o, objects[n]); err != nil {
			return fmt.Errorf("%s %x: %w", o.WireClass().Name(), uint64(o.ID()), err)
		}
		n++
	}
	if n < len(objects) {
		return fmt.Errorf("the plain reader has %x, too", objects[n].ID)
	}
	return nil
}

func (q *plainPair) sameObject(slot int, o *state.Object, p *refdecoder.Object) error {
	newest := p.Newest()
	if uint64(o.ID()) != p.ID || o.WireClass().Index() != p.Class || o.Life != p.Lifetime || o.Owner() != newest.Owner || o.Changed() != newest.Tick {
		return fmt.Errorf("lifetime %d, owner %d, version %d; the plain reader has %x, lifetime %d, owner %d, version %d",
			o.Life, o.Owner(), o.Changed(), p.ID, p.Lifetime, newest.Owner, newest.Tick)
	}
	if o.Hist.Len() != len(p.Versions) {
		return fmt.Errorf("%d versions, the plain reader has %d", o.Hist.Len(), len(p.Versions))
	}
	leaves := q.plain.Classes[p.Class].Leaves
	for i, v := range p.Versions {
		values := o.Hist.Values(i)
		got, want := o.Plan().AppendValues(nil, &values), refdecoder.AppendFields(nil, leaves, v.Fields)
		// Lists with numbers longer than necessary are stored as received.
		if string(got) != string(want) {
			fields, err := refdecoder.ReadFields(got, leaves)
			if err != nil {
				return err
			}
			got = refdecoder.AppendFields(nil, leaves, fields)
		}
		if o.Hist.Tick(i) != v.Tick || string(got) != string(want) {
			return fmt.Errorf("version %d is %x; of the plain reader version %d is %x", o.Hist.Tick(i), got, v.Tick, want)
		}
	}
	if q.taken {
		return nil
	}
	shown, err := o.Plan().Append(nil, o.Live())
	if err != nil {
		return err
	}
	if want := refdecoder.AppendFields(nil, leaves, newest.Fields); string(shown) != string(want) {
		return fmt.Errorf("shows %x, the plain reader %x", shown, want)
	}
	return nil
}
