package codec

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/netloop/netloop/internal/codec/quat"
	"github.com/netloop/netloop/internal/wire"
)

// A captured value as JSON, for people and for pages that show a state:
//
//	bool            true or false
//	integer         a number; a string beyond ±2^53, which a float64 cannot hold
//	float           the shortest number with the same value; "Infinity", "-Infinity"
//	quaternion      an array of its four components
//	Ref             "17.3", slot and generation; null for none
//	Instant         its nanoseconds, as an integer
//	string          a string
//	[]byte, [n]byte a base64 string
//	[]T             an array
//	map, set        an array of its entries, as structs of Key and Value, and of its keys
//	struct in these an object with the names of its leaves, such as {"Pos.X":1}
//	proto           its protobuf JSON, or a base64 string without one; null for nil

// AppendJSON appends the leaves of v as an array, in their order. A leaf for which hidden returns
// true is null. If hidden is nil, no leaf is hidden.
func (p *Plan) AppendJSON(dst []byte, v *Values, hidden func(leaf int) bool) []byte {
	dst = append(dst, '[')
	for i := range p.leaves {
		if i > 0 {
			dst = append(dst, ',')
		}
		if hidden != nil && hidden(i) {
			dst = append(dst, "null"...)
		} else {
			dst = p.AppendLeafJSON(dst, v, i)
		}
	}
	return append(dst, ']')
}

// AppendLeafJSON appends leaf i of v.
func (p *Plan) AppendLeafJSON(dst []byte, v *Values, i int) []byte {
	l := &p.leaves[i]
	if !l.kind.Blob() {
		return l.appendWordJSON(dst, v.Words[l.pos])
	}
	r := wire.NewReader(v.Blobs[l.pos])
	return l.appendBlobJSON(dst, &r)
}

// AppendMessageJSON appends a message in its wire form as an object with the names of its leaves.
func (p *Plan) AppendMessageJSON(dst, message []byte) ([]byte, error) {
	r := wire.NewReader(message)
	out := p.appendObjectJSON(dst, &r, "")
	if err := r.Done(); err != nil {
		return dst, err
	}
	return out, nil
}

// appendObjectJSON reads the leaves of a struct. Their names follow a prefix, which is left out.
func (p *Plan) appendObjectJSON(dst []byte, r *wire.Reader, prefix string) []byte {
	dst = append(dst, '{')
	for i := range p.leaves {
		if i > 0 {
			dst = append(dst, ',')
		}
		l := &p.leaves[i]
		dst = appendStringJSON(dst, []byte(strings.TrimPrefix(strings.TrimPrefix(l.name, prefix), ".")))
		dst = l.appendReadJSON(append(dst, ':'), r)
	}
	return append(dst, '}')
}

// appendReadJSON reads the leaf in its wire form.
func (l *leaf) appendReadJSON(dst []byte, r *wire.Reader) []byte {
	if l.kind.Blob() {
		return l.appendBlobJSON(dst, r)
	}
	return l.appendWordJSON(dst, l.readWord(r))
}

func (l *leaf) appendWordJSON(dst []byte, w uint64) []byte {
	switch l.kind {
	case Bool:
		return strconv.AppendBool(dst, w != 0)
	case Float32:
		return appendFloatJSON(dst, float64(math.Float32frombits(uint32(w))), 32)
	case Float64:
		return appendFloatJSON(dst, math.Float64frombits(w), 64)
	case Quant32, Range32:
		return appendFloatJSON(dst, l.value(float64(int64(w))), 32)
	case Quant64, Range64:
		return appendFloatJSON(dst, l.value(float64(int64(w))), 64)
	case Quat:
		return l.appendQuatJSON(dst, w)
	case RefKind:
		return appendRefJSON(dst, w)
	case Uint8, Uint16, Uint32, Uint64, Uint:
		if w > exactJSON {
			return append(strconv.AppendUint(append(dst, '"'), w, 10), '"')
		}
		return strconv.AppendUint(dst, w, 10)
	default:
		if n := int64(w); n > exactJSON || n < -exactJSON {
			return append(strconv.AppendInt(append(dst, '"'), n, 10), '"')
		}
		return strconv.AppendInt(dst, int64(w), 10)
	}
}

// exactJSON is the largest integer up to which a float64, the number of JavaScript, is exact.
const exactJSON = 1 << 53

func appendFloatJSON(dst []byte, f float64, bits int) []byte {
	switch {
	case math.IsNaN(f): // a captured value has no NaN
		return append(dst, `"NaN"`...)
	case math.IsInf(f, 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(f, -1):
		return append(dst, `"-Infinity"`...)
	}
	return strconv.AppendFloat(dst, f, 'g', -1, bits)
}

func (l *leaf) appendQuatJSON(dst []byte, w uint64) []byte {
	var q [4]float32
	quat.Unpack(&q, w, l.max)
	for i, c := range q {
		dst = append(dst, "[,,,"[i])
		dst = appendFloatJSON(dst, float64(c), 32)
	}
	return append(dst, ']')
}

// appendRefJSON appends an id in the format of state.ID.
func appendRefJSON(dst []byte, id uint64) []byte {
	if id == 0 {
		return append(dst, "null"...)
	}
	dst = strconv.AppendUint(append(dst, '"'), id>>32, 10)
	dst = strconv.AppendUint(append(dst, '.'), uint64(uint32(id)), 10)
	return append(dst, '"')
}

func (l *leaf) appendBlobJSON(dst []byte, r *wire.Reader) []byte {
	switch l.kind {
	case String:
		return appendStringJSON(dst, r.Block(l.max))
	case Bytes:
		return appendBytesJSON(dst, r.Block(l.max))
	case ByteArray:
		return appendBytesJSON(dst, r.Bytes(l.max))
	case Slice, Map:
		return l.appendListJSON(dst, r)
	case Proto:
		return l.appendProtoJSON(dst, r)
	default:
		panic("codec: no blob form for " + l.kind.String())
	}
}

func (l *leaf) appendListJSON(dst []byte, r *wire.Reader) []byte {
	prefix := l.name + "[]"
	one := l.elem.leaves[0].name == prefix // the element is not a struct
	keys := l.kind == Map && len(l.elem.leaves) == 1
	dst = append(dst, '[')
	for i := range r.Count(l.max, l.elem.least) {
		if r.Err() != nil {
			break
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		if one || keys {
			dst = l.elem.leaves[0].appendReadJSON(dst, r)
		} else {
			dst = l.elem.appendObjectJSON(dst, r, prefix)
		}
	}
	return append(dst, ']')
}

func (l *leaf) appendProtoJSON(dst []byte, r *wire.Reader) []byte {
	b, there := l.proto(r)
	if !there {
		return append(dst, "null"...)
	}
	if l.encoding != nil && l.encoding.JSON != nil {
		if text, err := l.encoding.JSON(b); err == nil {
			return append(dst, text...)
		}
	}
	return appendBytesJSON(dst, b)
}

func appendBytesJSON(dst, b []byte) []byte {
	dst = base64.StdEncoding.AppendEncode(append(dst, '"'), b)
	return append(dst, '"')
}

// appendStringJSON appends a string, of which most need no escape.
func appendStringJSON(dst, s []byte) []byte {
	for _, c := range s {
		if c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			text, _ := json.Marshal(string(s)) // Marshal of a string returns no error.
			return append(dst, text...)
		}
	}
	return append(append(append(dst, '"'), s...), '"')
}
