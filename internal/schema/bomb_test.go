package schema

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/netloop/netloop/internal/transport"
	"github.com/netloop/netloop/internal/wire"
)

// bomb makes the bytes of a message of n elements that are small on the wire and large decoded.
type bomb struct {
	name  string
	codec func() (Codec, error)
	bytes func(n int) []byte
}

// counted makes bombs of an element, behind their number.
func counted(element string) func(int) []byte {
	return func(n int) []byte {
		return append(wire.AppendUvarint(nil, uint64(n)), bytes.Repeat([]byte(element), n)...)
	}
}

// numbered makes them of elements that begin with their index, as two letters: keys rise.
func numbered(element func(key []byte) []byte) func(int) []byte {
	return func(n int) []byte {
		b := wire.AppendUvarint(nil, uint64(n))
		for i := range n {
			b = append(b, element([]byte{byte(i >> 8), byte(i)})...)
		}
		return b
	}
}

// repeated makes messages of one field, repeated.
func repeated(field string) func(int) []byte {
	return func(n int) []byte { return bytes.Repeat([]byte(field), n) }
}

// nested puts a message into itself.
func nested(field protowire.Number) func(int) []byte {
	return func(n int) (b []byte) {
		for range min(n, 1000) { // Decoding takes a few.
			b = protowire.AppendBytes(protowire.AppendTag(nil, field, protowire.BytesType), b)
		}
		return b
	}
}

type (
	bombStrings struct {
		S []string `net:"max=16000"`
	}
	bombSlices struct {
		S []struct {
			T []struct{ A, B, C, D uint64 } `net:"max=100"`
		} `net:"max=16000"`
	}
	bombTexts struct {
		S []struct {
			A, B, C string `net:"max=100"`
		} `net:"max=16000"`
	}
	bombStructs struct {
		S []struct{ A, B, C, D uint64 } `net:"max=16000"`
	}
	bombUnsent struct {
		S []struct {
			A uint8
			B [1000]byte `net:"-"`
		} `net:"max=16000"`
	}
	bombMap struct {
		M map[string]uint8 `net:"max=16000"`
	}
	bombMaps struct {
		S []struct {
			M map[uint8]uint8 `net:"max=100"`
		} `net:"max=16000"`
	}
	bombProtos struct {
		S []*descriptorpb.DescriptorProto `net:"max=16000"`
	}
	bombProtoMap struct {
		M map[string]*descriptorpb.DescriptorProto `net:"max=16000"`
	}
)

var bombs = []bomb{
	{"empty strings", NewCodec[bombStrings], counted("\x00")},
	{"short strings", NewCodec[bombStrings], counted("\x01x")},
	{"empty slices", NewCodec[bombSlices], counted("\x00")},
	{"slices of one struct", NewCodec[bombSlices], counted("\x01\x00\x00\x00\x00")},
	{"empty texts", NewCodec[bombTexts], counted("\x00\x00\x00")},
	{"structs", NewCodec[bombStructs], counted("\x00\x00\x00\x00")},
	{"structs with fields that do not travel", NewCodec[bombUnsent], counted("\x00")},
	{"a map", NewCodec[bombMap], numbered(func(k []byte) []byte { return append(wire.AppendBytes(nil, k), 0) })},
	{"maps of one entry", NewCodec[bombMaps], counted("\x01\x00\x00")},
	{"empty maps", NewCodec[bombMaps], counted("\x00")},
	{"protobuf messages in a slice", NewCodec[bombProtos], counted("\x01")},
	{"protobuf messages that are not empty, in a slice", NewCodec[bombProtos], counted("\x03\x12\x00")},
	{"protobuf messages in a map", NewCodec[bombProtoMap], numbered(func(k []byte) []byte {
		return append(wire.AppendBytes(nil, k), "\x03\x12\x00"...)
	})},
	{"empty submessages", NewCodec[*descriptorpb.FileDescriptorSet], repeated("\x0a\x00")},
	{"submessages in submessages", NewCodec[*descriptorpb.FileDescriptorSet], repeated("\x0a\x02\x22\x00")},
	{"empty values", NewCodec[*structpb.ListValue], repeated("\x0a\x00")},
	{"lists in values", NewCodec[*structpb.ListValue], repeated("\x0a\x02\x32\x00")},
	{"maps in values", NewCodec[*structpb.ListValue], repeated("\x0a\x06\x2a\x04\x0a\x02\x0a\x00")},
	{"packed numbers", NewCodec[*descriptorpb.SourceCodeInfo_Location], func(n int) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), make([]byte, n))
	}},
	{"numbers one by one", NewCodec[*descriptorpb.SourceCodeInfo_Location], repeated("\x08\x01")},
	{"short texts", NewCodec[*descriptorpb.SourceCodeInfo_Location], repeated("\x32\x01x")},
	{"unknown fields", NewCodec[*descriptorpb.FileDescriptorSet], repeated("\x7a\x00")},
	{"unknown groups", NewCodec[*descriptorpb.FileDescriptorSet], repeated("\x7b\x7c")},
	{"groups in groups", NewCodec[*descriptorpb.FileDescriptorSet], func(n int) []byte {
		return append(bytes.Repeat([]byte{0x7b}, n), bytes.Repeat([]byte{0x7c}, n)...)
	}},
	{"a map of values", NewCodec[*structpb.Struct], func(n int) (b []byte) {
		for i := range n {
			b = append(b, fmt.Sprintf("\x0a\x05\x0a\x03%03x", i)...)
		}
		return b
	}},
	{"a message in itself", NewCodec[*descriptorpb.DescriptorProto], nested(3)},
}

// largest returns the largest message that a server decodes, and the largest that a frame holds.
func (b *bomb) largest(c *Codec) (decoded, fits []byte) {
	for n := 1; ; n += 1 + n/50 {
		m := b.bytes(n)
		if len(m) > transport.MaxPayload || n > 16000 {
			return decoded, fits
		}
		if fits = m; c.Size(m) <= transport.MaxDecoded {
			decoded = m
		}
	}
}

// For any frame, a server allocates at most 1 MiB to decode it and takes little time: larger
// messages are detected before. The time is checked only on an otherwise idle machine.
func TestNoFrameIsABomb(t *testing.T) {
	for _, b := range bombs {
		t.Run(b.name, func(t *testing.T) {
			c, err := b.codec()
			if err != nil {
				t.Fatal(err)
			}
			decoded, fits := b.largest(&c)
			for _, m := range [][]byte{decoded, fits} {
				size := c.Size(m)
				took, allocated := spent(func() {
					if c.Size(m) <= transport.MaxDecoded {
						_, err = c.Decode(m)
					}
				})
				t.Logf("%d bytes, estimated %d, decoded %v: %v, %d bytes", len(m), size, size <= transport.MaxDecoded, took, allocated)
				if allocated > 1<<20 {
					t.Errorf("%d bytes allocate %d to be decoded, and %d were estimated", len(m), allocated, size)
				}
				if limit := 1200 * time.Microsecond; os.Getenv("NETLOOP_VERIFY") != "" && took > limit {
					t.Errorf("%d bytes take %v to be decoded, of at most %v", len(m), took, limit)
				}
			}
		})
	}
}

// spent returns the least time of fn, and its allocations.
func spent(fn func()) (least time.Duration, allocated uint64) {
	fn() // One-time allocations.
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	least = time.Hour
	for range 20 {
		start := time.Now()
		fn()
		least = min(least, time.Since(start))
	}
	return least, after.TotalAlloc - before.TotalAlloc
}
