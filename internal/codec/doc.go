// Package codec turns plain Go structs into bytes and back.
//
//	Compile(type) ─▶ Plan: a flat list of leaves, each a kind, an offset and its limits
//	                  │
//	  messages        ├─ Append, Decode: every leaf in order, from and to a struct in memory
//	  netvar          └─ Capture: struct ─▶ Values (words and blobs, rounded to wire precision)
//	                     PutDelta, TakeDelta: Values ─▶ bits ─▶ Values (delta.go)
//	                     AppendValues: Values ─▶ bytes, for digests
//	                     Restore: Values ─▶ struct
//	                     Between: two Values ─▶ struct, as it is drawn between them (between.go)
//
//	Bind(type, layout) ─▶ Plan of the other side's layout, matched by the names of fields
//
// A type is walked by reflection once, when it is compiled. After that a struct is reached
// through unsafe offsets and a switch over the kind of each leaf, with no allocation except
// for the strings and slices that a decoder makes.
//
// # Fields
//
//	bool                    one byte, 0 or 1
//	int8 … int64, int       zigzag varint; int travels as 64 bits
//	uint8 … uint64, uint    varint; uint travels as 64 bits
//	float32, float64        4 or 8 bytes, little endian; NaN becomes 0
//	float with quant=q      zigzag varint of the number of steps of size q, rounded half to even
//	string, []byte          length, then the bytes
//	float with a range      varint of the number of steps above the least
//	four floats with quat   the smallest three, in whole bytes (quat.go)
//	[n]byte                 n bytes
//	[n]T                    n times T
//	[]T                     count, then the elements
//	map[K]V                 count, then keys and values in the order of the keys (map.go)
//	map[K]struct{}          the same without values: a set
//	pointer to a message    length + 1, then the bytes; 0 for nil (encoding.go)
//	struct                  its fields in order
//	Ref, Instant            varint of the id, zigzag varint of the nanoseconds
//
// Named types travel as what they are made of, so an enumeration is its integer. Other
// pointers, interfaces, channels and functions have no place in a plain value and are refused,
// as is an unexported field, which the codec of another build could not see.
//
// # Tags
//
//	`net:"-"`             the field is local: it is neither written nor touched
//	`net:"quant=1/256"`   step of a float; on an array, slice or struct, of the floats inside
//	`net:"range=-9:9"`    limits of a float with a step, rounded outward to whole steps
//	`net:"quat=10"`       bits of a component of a quaternion, on four float32
//	`net:"max=16"`        most bytes of a string, []byte or protobuf message, most elements
//	                      of a slice or map
//	`net:"each=16"`       most bytes of each string, []byte or message in a slice or map
//	`net:"key=ID"`        on a slice of structs: the field that tells its elements apart, so
//	                      that a difference (script.go) follows them when they move
//	`net:"interval=1s"`   on a field of state: it is captured at most once in a second, all inside
//	                      together
//	`net:"threshold=2"`   on numbers of state: a change of less is not captured (hold.go)
//	`net:"lerp=angle"`    on numbers of state: how they are drawn between two versions (lerp.go)
//	`net:"teleport"`      on a field of state: when it has changed, nothing of the struct is drawn
//	                      in between (lerp.go)
//	`net:"weight=4"`      on a field of state: how much a change of it is needed (weight.go)
//	`net:"name=Old"`      what the field is called on the wire, whatever Go calls it
//
// Without max a string may have [DefaultMaxString] bytes, a []byte [DefaultMaxBytes] bytes and a
// slice or map [DefaultMaxSlice] elements. A message over a limit is refused when it is written; a
// captured state is cut to it and counted, because a tick cannot fail over one name that is too
// long. An empty slice or map is read as nil.
//
// Quantised float32 without a range are clamped to ±(2^31-1) steps and float64 to ±2^53, both
// infinities included. A reader refuses NaN and everything out of the range of its field, so what
// comes out of Decode is a value that the game could have made itself.
package codec
