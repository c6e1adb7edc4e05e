package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"os/signal"
	"time"

	"github.com/netloop/netloop/bench/measure"
	"github.com/netloop/netloop/bench/world"
)

// headSize is the size of the tick, a uint32, and of the server's time, an int64 of nanoseconds, in
// front of the entities.
const headSize = 4 + 8

// payloadSize is the size of an update of the peers that send bytes: nano, Pitaya and ENet.
const payloadSize = headSize + world.Entities*4*4

// appendPayload appends the update of a tick. It is written once a tick, and broadcast.
func appendPayload(b []byte, move world.Motion, tick uint32, sent time.Duration) []byte {
	b = binary.LittleEndian.AppendUint32(b, tick)
	b = binary.LittleEndian.AppendUint64(b, uint64(sent))
	for i := range world.Entities {
		e := move(uint64(tick), i)
		for _, x := range [...]float32{e.X, e.Y, e.VX, e.VY} {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
	}
	return b
}

// head reads the tick and the server's time of an update.
func head(b []byte) (tick uint32, sent time.Duration, err error) {
	if len(b) != payloadSize {
		return 0, 0, fmt.Errorf("an update has %d bytes, want %d", len(b), payloadSize)
	}
	return binary.LittleEndian.Uint32(b), time.Duration(binary.LittleEndian.Uint64(b[4:])), nil
}

// decode reads the entities of an update.
func decode(b []byte, into *[world.Entities]world.Body) {
	at := headSize
	next := func() float32 {
		x := math.Float32frombits(binary.LittleEndian.Uint32(b[at:]))
		at += 4
		return x
	}
	for i := range into {
		into[i] = world.Body{X: next(), Y: next(), VX: next(), VY: next()}
	}
}

// serverArgs are the arguments of every server.
type serverArgs struct {
	addr  string
	rate  int
	move  world.Motion
	world string
	stall stall
}

// stall lets one tick take 2 s, when the measurement asks for it by a signal.
type stall chan os.Signal

// stallTime is the length of that tick.
const stallTime = 2 * time.Second

func newStall() stall {
	s := make(stall, 1) // Size 1: of several requests at once, one is enough.
	signal.Notify(s, measure.Stall)
	return s
}

// tick is called in each tick.
func (s stall) tick() {
	select {
	case <-s:
		time.Sleep(stallTime)
	default:
	}
}

// ticker makes the updates of a server that sends bytes.
type ticker struct {
	args   serverArgs
	number uint32
}

// next returns the update of the next tick.
func (t *ticker) next() []byte {
	t.number++
	sent := measure.Now()
	t.args.stall.tick()
	return appendPayload(make([]byte, 0, payloadSize), t.args.move, t.number, sent)
}
