package schema

import (
	"math/bits"
	"reflect"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/netloop/netloop/internal/codec"
)

// A client limits the memory of a server's state. The decoded size of a protobuf message depends on
// its contents: an empty element of a list is two bytes on the wire, but its whole struct in
// memory. A protoShape adds that up from the wire form, without decoding it.

// protoShape holds the sizes of messages of a type in memory.
type protoShape struct {
	size    int // of the struct
	fields  map[protowire.Number]*protoPart
	counted []*protoPart // the lists and maps
}

// protoPart is one field of a shape.
type protoPart struct {
	kind     protoreflect.Kind
	repeated bool
	place    int         // in counted
	element  int         // bytes of an element of a list, or of an entry of a map
	fixed    int         // bytes allocated if the field is set
	entry    *protoShape // of a map: its entries, with the size of an empty value
	message  *protoShape // the message that it refers to
	there    bool        // the size of that message is already counted
}

// extensionBytes is the size of one slot in the map of a message's extensions.
const extensionBytes = 52

// shapeOf computes the shape of a type and of the types that it refers to, possibly itself.
func shapeOf(t protoreflect.MessageType, seen map[protoreflect.FullName]*protoShape) *protoShape {
	name := t.Descriptor().FullName()
	if s := seen[name]; s != nil {
		return s
	}
	s := &protoShape{fields: map[protowire.Number]*protoPart{}}
	seen[name] = s
	s.size = codec.Allocated(int(reflect.TypeOf(t.Zero().Interface()).Elem().Size()))
	m := t.New()
	for i := range t.Descriptor().Fields().Len() {
		s.add(m, t.Descriptor().Fields().Get(i), seen)
	}
	protoregistry.GlobalTypes.RangeExtensionsByMessage(name, func(x protoreflect.ExtensionType) bool {
		s.add(m, x.TypeDescriptor(), seen).fixed += codec.MapHeap(1, extensionBytes)
		return true
	})
	return s
}

func (s *protoShape) add(m protoreflect.Message, f protoreflect.FieldDescriptor, seen map[protoreflect.FullName]*protoShape) *protoPart {
	p := &protoPart{kind: f.Kind(), repeated: f.IsList(), place: len(s.counted), element: wordSize(f.Kind())}
	s.fields[f.Number()] = p
	if f.IsList() || f.IsMap() {
		s.counted = append(s.counted, p)
	}
	switch {
	case f.IsMap():
		p.element = wordSize(f.MapKey().Kind()) + wordSize(f.MapValue().Kind())
		value := &protoPart{kind: f.MapValue().Kind(), there: true}
		p.entry = &protoShape{fields: map[protowire.Number]*protoPart{1: {kind: f.MapKey().Kind()}, 2: value}}
		if f.MapValue().Message() != nil {
			value.message = shapeOf(m.NewField(f).Map().NewValue().Message().Type(), seen)
			p.entry.size = value.message.size
		}
	case f.Message() != nil && f.IsList():
		p.message = shapeOf(m.NewField(f).List().NewElement().Message().Type(), seen)
	case f.Message() != nil:
		p.message = shapeOf(m.NewField(f).Message().Type(), seen)
	}
	if f.ContainingOneof() != nil || f.HasPresence() && f.Message() == nil {
		p.fixed = 16 // a pointer to it, or the wrapper of a oneof
	}
	return p
}

// wordSize returns the size of a value of a kind in a struct or a slice.
func wordSize(k protoreflect.Kind) int {
	switch k {
	case protoreflect.BoolKind:
		return 1
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Uint32Kind, protoreflect.Sfixed32Kind,
		protoreflect.Fixed32Kind, protoreflect.FloatKind, protoreflect.EnumKind:
		return 4
	case protoreflect.StringKind:
		return 16
	case protoreflect.BytesKind:
		return 24
	default: // 64 bits, or a pointer to a message
		return 8
	}
}

// heap estimates the memory of a decoded message, in bytes. Even for a message crafted against the
// estimate it returns at least half. An invalid message, or one nested deeper than decoding allows,
// counts up to that point.
func (s *protoShape) heap(b []byte) int { return s.heapWithin(b, recursionLimit) }

func (s *protoShape) heapWithin(b []byte, depth int) int {
	if len(b) == 0 || depth == 0 {
		return s.size
	}
	size, counts := s.size, make([]int, len(s.counted))
	for len(b) > 0 {
		number, form, n := protowire.ConsumeTag(b)
		if n < 0 {
			break
		}
		value := protowire.ConsumeFieldValue(number, form, b[n:])
		if value < 0 {
			break
		}
		if p := s.fields[number]; p != nil {
			size += p.heap(number, form, b[n:n+value], counts, depth-1)
		}
		b = b[n+value:]
	}
	for i, p := range s.counted {
		if p.entry != nil {
			size += codec.MapHeap(counts[i], p.element)
		} else {
			size += codec.Allocated(appended(counts[i]) * p.element)
		}
	}
	return size
}

// heap estimates the memory of one occurrence of a field, in bytes. It counts an element of a list
// or an entry of a map in counts; from that the caller adds the memory of the list or map itself.
func (p *protoPart) heap(number protowire.Number, form protowire.Type, b []byte, counts []int, depth int) int {
	within := b
	switch form {
	case protowire.BytesType:
		within, _ = protowire.ConsumeBytes(b)
	case protowire.StartGroupType:
		within, _ = protowire.ConsumeGroup(number, b)
	}
	switch {
	case p.entry != nil:
		counts[p.place]++
		return p.fixed + p.entry.heapWithin(within, depth+1)
	case p.repeated && form == protowire.BytesType && p.packs():
		return p.fixed + codec.Allocated(packed(p.kind, within)*p.element) // allocated at once
	case p.repeated:
		counts[p.place]++
	}
	switch {
	case p.message != nil && p.there:
		return p.message.heapWithin(within, depth) - p.message.size
	case p.message != nil:
		return p.fixed + p.message.heapWithin(within, depth)
	case p.packs():
		return p.fixed
	default:
		return p.fixed + codec.Allocated(len(within))
	}
}

// packs reports whether a list of the kind may be packed.
func (p *protoPart) packs() bool {
	return p.message == nil && p.kind != protoreflect.StringKind && p.kind != protoreflect.BytesKind
}

// packed counts the elements of a packed list.
func packed(k protoreflect.Kind, b []byte) (n int) {
	switch k {
	case protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind, protoreflect.FloatKind:
		return len(b) / 4
	case protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind, protoreflect.DoubleKind:
		return len(b) / 8
	}
	for _, c := range b {
		if c < 0x80 {
			n++
		}
	}
	return n
}

// appended returns about the capacity of a slice to which n elements were appended one by one.
func appended(n int) int {
	if n <= 256 {
		return 1 << bits.Len(uint(max(n, 1)-1)) * min(n, 1)
	}
	return n + n/4
}
