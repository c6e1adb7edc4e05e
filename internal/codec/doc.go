// Package codec turns plain Go structs into bytes and back.
//
//	Compile(type) ─▶ Plan: a flat list of leaves, each a kind, an offset and its limits
//	                  │
//	  messages        ├─ Append, Decode: every leaf in order, from and to a struct in memory
//	  netvar          └─ Capture: struct ─▶ Values (words and blobs, rounded to wire precision)
//	                     PutDelta, TakeDelta: Values ─▶ bits ─▶ Values (delta.go)
//	                     AppendValues: Values ─▶ bytes, for digests
//	                     Restore: Values ─▶ struct
//	                     Between: two Values ─▶ struct, interpolated for drawing (between.go)
//
//	Bind(type, layout) ─▶ Plan of the other side's layout, matched by the names of fields
//
// Compiling reads a type by reflection once. After that a struct is accessed through unsafe offsets
// and a switch over the kind of each leaf, and only decoding strings and slices allocates.
//
// # Fields
//
//	bool                    one byte, 0 or 1
//	int8 … int64, int       zigzag varint; int is sent as 64 bits
//	uint8 … uint64, uint    varint; uint is sent as 64 bits
//	float32, float64        4 or 8 bytes, little endian; NaN becomes 0
//	float with quant=q      zigzag varint of the number of steps of size q, rounded half to even
//	string, []byte          length, then the bytes
//	float with a range      varint of the number of steps above the least
//	four floats with quat   the smallest three, in whole bytes (package quat)
//	[n]byte                 n bytes
//	[n]T                    n times T
//	[]T                     count, then the elements
//	map[K]V                 count, then keys and values in the order of the keys (map.go)
//	map[K]struct{}          the same without values: a set
//	pointer to a message    length + 1, then the bytes; 0 for nil (encoding.go)
//	struct                  its fields in order
//	Ref, Instant            varint of the id, zigzag varint of the nanoseconds
//
// Named types are sent as their underlying types, so an enumeration is its integer. Other pointers,
// interfaces, channels and functions are not plain values and are refused, as is an unexported
// field, which the codec of another build could not access.
//
// # Tags
//
//	`net:"-"`             the field is local: it is neither written nor changed
//	`net:"quant=1/256"`   step of a float; on an array, slice or struct, of the floats inside
//	`net:"range=-9:9"`    limits of a float with a step, rounded outward to whole steps
//	`net:"quat=10"`       bits of a component of a quaternion, on four float32
//	`net:"max=16"`        most bytes of a string, []byte or protobuf message, most elements
//	                      of a slice or map
//	`net:"each=16"`       most bytes of each string, []byte or message in a slice or map
//	`net:"key=ID"`        on a slice of structs: the field that identifies its elements, so
//	                      that a difference (script.go) follows them when they move
//	`net:"interval=1s"`   on a field of state: it is captured at most once in a second, with all
//	                      its parts together
//	`net:"threshold=2"`   on numbers of state: a smaller change is not captured (hold.go)
//	`net:"lerp=angle"`    on numbers of state: the interpolation between two versions (lerp.go)
//	`net:"teleport"`      on a field of state: when it has changed, the struct is not
//	                      interpolated (lerp.go)
//	`net:"weight=4"`      on a field of state: the urgency of a change of it (weight.go)
//	`net:"name=Old"`      the name of the field on the wire, instead of its Go name
//
// Without max a string may have [DefaultMaxString] bytes, a []byte [DefaultMaxBytes] bytes and a
// slice or map [DefaultMaxSlice] elements. Writing a message over a limit is an error; a captured
// state is cut to the limit and counted, because a tick must not fail over one long name. An empty
// slice or map is read as nil.
//
// Quantised float32 without a range are clamped to ±(2^31-1) steps and float64 to ±2^53, both
// infinities included. A reader refuses NaN and any value out of the range of its field, so Decode
// returns only values that the game could have made itself.
package codec
