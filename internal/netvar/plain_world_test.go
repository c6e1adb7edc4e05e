package netvar

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"
	"unsafe"

	"github.com/netloop/netloop/internal/codec"
)

// The classes of the plain reader's worlds: together they have every type and every tag that
// changes the wire.

type place struct {
	X, Y, Z float32 `net:"quant=1/256"`
}

// drifter moves smoothly, so that there are trends.
type drifter struct {
	At     place
	Turn   [4]float32 `net:"quat=10"`
	Spin   [4]float32 `net:"quat=20"`
	F      [3]float32
	D      [2]float64
	Gauge  float32 `net:"quant=1/8,range=-100:100"`
	Heat   float64 `net:"quant=0.1,range=20:90"`
	Clock  codec.Instant
	Count  int64
	Tiny   int8
	Wide   uint64
	Steps  [2]float64 `net:"quant=0.01"`
	Secret float32    `net:"quant=1/256,read=owner"`
}

// drift moves each field at its own pace, some of them to the limits of their range.
func (d *drifter) drift(by float64, tick uint64) {
	d.At.X += float32(by) / 50
	d.At.Y -= float32(by*by) / 99
	d.At.Z += float32(math.Sin(float64(tick%100)/9)) / 4
	half := math.Mod(float64(tick)*by/150, math.Pi)
	d.Turn = [4]float32{float32(math.Sin(half)), 0, 0, float32(math.Cos(half))}
	d.Spin = [4]float32{float32(math.Sin(half) / 2), float32(math.Sin(half) / 3), -float32(math.Sin(half) / 5), float32(math.Cos(half))}
	for i := range d.F {
		d.F[i] += float32(by) * 0.37 * float32(i+1)
	}
	d.D[0] += by / 3
	d.D[1] -= by / 7
	d.Gauge += float32(by)
	d.Heat += 0.3
	d.Clock = codec.Instant{At: d.Clock.At + 16_666_667}
	d.Count += int64(by * 1000)
	d.Tiny++
	d.Wide -= 1 << 20
	d.Steps[0] += by / 10
	d.Steps[1] -= 0.05
	d.Secret++
}

type note struct{ text string }

// notes encodes values unchanged: custom encodings are bytes to the plain reader, too.
func notes(t reflect.Type) *codec.Encoding {
	if t != reflect.TypeFor[*note]() {
		return nil
	}
	of := func(field unsafe.Pointer) **note { return (**note)(field) }
	return &codec.Encoding{
		Name:   "test.Note",
		Append: func(dst []byte, field unsafe.Pointer) ([]byte, error) { return append(dst, (*of(field)).text...), nil },
		Check:  func([]byte) error { return nil },
		Store:  func(field unsafe.Pointer, b []byte) error { *of(field) = &note{string(b)}; return nil },
		Heap:   func(b []byte) int { return codec.Allocated(16) + codec.Allocated(len(b)) },
		Clone:  func(field unsafe.Pointer) { *of(field) = &note{(*of(field)).text} },
	}
}

type gear struct {
	ID    uint16
	Name  string `net:"max=6"`
	Worn  bool
	Turn  [4]float32 `net:"quat=9"`
	F     float32
	D     float64
	Wear  float32 `net:"quant=1/8,range=-9:9"`
	Foe   codec.Ref
	At    codec.Instant
	Parts []int32 `net:"max=3"`
	Mail  *note   `net:"max=5"`
	Tag   [2]byte
}

// lane is a list of elements with one leaf each.
type lane struct {
	Places []place `net:"max=5"`
}

type everything struct {
	I8   int8
	I16  int16
	I32  int32
	I64  int64
	Int  int
	U8   uint8
	U16  uint16
	U32  uint32
	U64  uint64
	Bool bool
	F32  float32
	F64  float64
	Q32  [2]float32 `net:"quant=1/256"`
	Q64  float64    `net:"quant=0.01"`
	R32  float32    `net:"quant=1/8,range=-100:100"`
	R64  float64    `net:"quant=0.1,range=20:90"`
	Turn [4]float32 `net:"quat=5"`
	Foe  codec.Ref
	At   codec.Instant
	Name string `net:"max=12"`
	Raw  []byte `net:"max=9"`
	Tag  [3]byte
	Grid [2][2]int16
	Bag  []gear              `net:"max=4"`
	Rack []gear              `net:"max=4,key=ID"`
	Path []lane              `net:"max=3"`
	Ammo map[string]uint8    `net:"max=4"`
	By   map[int16]gear      `net:"max=3"`
	Seen map[uint32]struct{} `net:"max=4"`
	Refs map[codec.Ref]bool  `net:"max=4"`
	Mail *note               `net:"max=9"`
	Own  struct {
		Ammo  int32
		Heat  float32 `net:"quant=1/4,range=20:90"`
		Cards []uint8 `net:"max=5"`
		Hat   int16   `net:"read=all"`
	} `net:"read=owner"`
	Team struct {
		Plan string `net:"max=8"`
		Spot [2]int8
		Turn [4]float32 `net:"quat=6"`
		Mail *note      `net:"max=5"`
		List []place    `net:"max=90"`
	} `net:"read=team"`
}

// scramble changes one value somewhere in v.
func scramble(rng *rand.Rand, v reflect.Value) {
	switch v.Interface().(type) {
	case codec.Ref:
		v.Set(reflect.ValueOf(codec.Ref{ID: []uint64{0, uint64(rng.IntN(20))<<32 | 1 + uint64(rng.IntN(3)), 65535<<32 | math.MaxUint32}[rng.IntN(3)]}))
		return
	case codec.Instant:
		v.Set(reflect.ValueOf(codec.Instant{At: time.Duration(anyInt(rng, v.Field(0).Int()))}))
		return
	case *note:
		if rng.IntN(3) == 0 {
			v.SetZero()
		} else {
			v.Set(reflect.ValueOf(&note{anyText(rng)}))
		}
		return
	case [4]float32:
		v.Set(reflect.ValueOf(anyRotation(rng)))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(anyInt(rng, v.Int()))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(anyInt(rng, int64(v.Uint()))))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(anyFloat(rng, v.Float()))
	case reflect.String:
		v.SetString(anyText(rng))
	case reflect.Struct:
		scramble(rng, v.Field(rng.IntN(v.NumField())))
	case reflect.Array:
		scramble(rng, v.Index(rng.IntN(v.Len())))
	case reflect.Slice:
		scrambleSlice(rng, v)
	case reflect.Map:
		scrambleMap(rng, v)
	default:
		panic(v.Type())
	}
}

func scrambleSlice(rng *rand.Rand, v reflect.Value) {
	switch n := v.Len(); {
	case n > 0 && rng.IntN(3) > 0:
		scramble(rng, v.Index(rng.IntN(n)))
	case n > 0 && rng.IntN(3) == 0:
		i := rng.IntN(n)
		v.Set(reflect.AppendSlice(v.Slice(0, i), v.Slice(i+1, n)))
	case n < 90:
		for range 1 + rng.IntN([]int{1, 3, 40, 400}[rng.IntN(4)]) {
			e := reflect.New(v.Type().Elem()).Elem()
			scramble(rng, e)
			v.Set(reflect.Append(v, e))
		}
	}
}

func scrambleMap(rng *rand.Rand, v reflect.Value) {
	if v.IsNil() {
		v.Set(reflect.MakeMap(v.Type()))
	}
	key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
	if keys := v.MapKeys(); len(keys) > 0 && rng.IntN(2) == 0 {
		// sorted, so that the seed alone decides
		slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		key.Set(keys[rng.IntN(len(keys))])
		value.Set(v.MapIndex(key))
	} else {
		scramble(rng, key)
	}
	if rng.IntN(3) == 0 {
		v.SetMapIndex(key, reflect.Value{})
		return
	}
	if value.Kind() != reflect.Struct || value.NumField() > 0 {
		scramble(rng, value)
	}
	v.SetMapIndex(key, value)
}

func anyInt(rng *rand.Rand, was int64) int64 {
	switch rng.IntN(4) {
	case 0:
		return was + 1
	case 1:
		return was - int64(rng.IntN(300))
	case 2:
		return int64(rng.Uint64() >> rng.IntN(64))
	}
	return []int64{0, -1, math.MaxInt64, math.MinInt64, 1 << 40, -1 << 40, 127, -128}[rng.IntN(8)]
}

func anyFloat(rng *rand.Rand, was float64) float64 {
	switch rng.IntN(4) {
	case 0:
		return was + 0.25
	case 1:
		return was * (rng.Float64() - 0.5) * 3
	case 2:
		return (rng.Float64() - 0.5) * 200
	}
	return []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), math.MaxFloat32, -math.MaxFloat64, 1e-45, 5e-324, 1e300}[rng.IntN(10)]
}

func anyText(rng *rand.Rand) string {
	b := make([]byte, rng.IntN(7))
	for i := range b {
		b[i] = byte(rng.IntN(256))
	}
	return string(b)
}

func anyRotation(rng *rand.Rand) (q [4]float32) {
	if rng.IntN(8) == 0 {
		return [][4]float32{{}, {1}, {0.5, 0.5, 0.5, 0.5}, {0, -0.7071, 0, 0.7071}, {0, 0, 0, float32(math.NaN())}}[rng.IntN(5)]
	}
	for i := range q {
		q[i] = rng.Float32() - 0.5
	}
	return q
}
