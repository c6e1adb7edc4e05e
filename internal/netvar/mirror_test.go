package netvar

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/testing/seeds"
)

// filmedTick is the content of one snapshot, and its client's state.
type filmedTick struct {
	tick           uint64
	packets, large [][]byte
	digest         uint64
}

// filmed is a world of the model with an additional client on a link without losses. The data sent
// to that client is kept for a while before a mirror receives it.
type filmed struct {
	*model
	camera *Peer
	wide   Limit
	kept   []filmedTick

	image    *World
	mirror   *Mirror
	first    *Peer // of the image, from its first tick on
	watchers []*watcher
}

// watcher is a client of the mirrored world that joins late, over a lossy link.
type watcher struct {
	p        *Peer
	r        *replica.Replica
	down, up lossy
	stream   pipe
}

func newFilmed(s schema, seed uint64) *filmed {
	f := &filmed{model: newModel(s, seed), wide: Limit{Packets: packet.MaxPackets, PacketSize: 1 << 16, Reliable: true}}
	f.w.Shed(0) // in the mirrored world weights do not cause shedding
	f.camera = f.w.NewPeer(f.model.tick + 1)
	f.camera.Handle = 2 // it may see and read the same as the last client of the model
	f.camera.AtOnce()
	f.image = NewWorld(s.table)
	f.mirror = NewMirror(f.image, f.w)
	f.first = f.image.NewPeer(f.model.tick + 1)
	return f
}

// film plays a tick, and stores the data sent to the client.
func (f *filmed) film(pause bool) error {
	if err := f.step(true); err != nil {
		return err
	}
	if pause {
		return nil
	}
	packets, first := f.camera.AppendSnapshot(nil, f.model.tick, f.wide)
	shot := filmedTick{tick: f.model.tick, packets: packets, digest: f.w.Digest(f.camera)}
	for _, b := range f.camera.Large() {
		shot.large = append(shot.large, bytes.Clone(b))
	}
	f.kept = append(f.kept, shot)
	f.camera.Ack([]Range{{First: first, Last: first + uint64(len(packets)) - 1}})
	f.camera.AckLarge(f.camera.large.last)
	return nil
}

// show passes the oldest stored data to the mirror, in a tick of the mirrored world.
func (f *filmed) show(tick func(filmed uint64) uint64) (shot filmedTick, all bool, err error) {
	shot, f.kept = f.kept[0], f.kept[1:]
	for _, b := range shot.packets {
		if err := f.mirror.Apply(b); err != nil {
			return shot, false, err
		}
	}
	for _, b := range shot.large {
		if err := f.mirror.ApplyLarge(b); err != nil {
			return shot, false, err
		}
	}
	at := tick(shot.tick)
	all = f.mirror.Show(at)
	f.image.Capture(at)
	return shot, all, nil
}

func asFilmed(tick uint64) uint64 { return tick }

// twice adds a tick of the mirrored world between any two filmed ticks.
func twice(tick uint64) uint64 { return 2 * tick }

// watch plays a tick for the clients of the mirrored world.
func (f *filmed) watch(tick uint64, rng *rand.Rand) error {
	if len(f.watchers) < 3 && rng.IntN(20) == 0 {
		link := lossy{rng: rng, loss: 0.2, delay: rng.IntN(4), jitter: rng.IntN(4)}
		c := &watcher{p: f.image.NewPeer(tick), r: replica.New(f.table), down: link, up: link, stream: pipe{rng: rng, late: 3}}
		c.r.StartAt(tick)
		f.watchers = append(f.watchers, c)
	}
	for i, c := range f.watchers {
		for _, p := range c.up.receive(tick) {
			c.p.Ack(p.acks)
		}
		c.p.RequestDigest(1)
		packets, _ := c.p.AppendSnapshot(nil, tick, wide)
		for _, b := range packets {
			c.down.send(tick, parcel{bytes: b})
		}
		for _, b := range c.p.Large() {
			c.stream.send(tick, parcel{bytes: bytes.Clone(b), tick: tick})
		}
		if err := c.receive(tick); err != nil {
			return fmt.Errorf("watcher %d: %w", i, err)
		}
	}
	return nil
}

func (c *watcher) receive(tick uint64) error {
	for _, p := range c.down.receive(tick) {
		a, err := c.r.Apply(p.bytes)
		if err != nil {
			return err
		}
		if a.Ack {
			c.up.send(tick, parcel{acks: []Range{{First: a.Packet, Last: a.Packet}}})
		}
	}
	for _, p := range c.stream.receive(tick) {
		id, err := c.r.ApplyLarge(p.bytes)
		if err != nil {
			return err
		}
		c.p.AckLarge(id)
	}
	if c.r.Stats().DigestsUnequal > 0 {
		return fmt.Errorf("its state is not the one that its snapshot says")
	}
	return nil
}

// In each tick the clients of a mirrored world have the state of the filmed client: the same
// objects with the same ids, lifetimes, owners, masks and values, also after joins and losses.
func TestAMirroredWorldEqualsTheFeeds(t *testing.T) {
	schemas := []schema{newSchema(t).withAgents(t), newSchema(t).withLightAgents(t)}
	var equal, masked, hidden uint64
	played := 0
	for seed := range seeds.Of(t, 20) {
		played++
		rng := rand.New(rand.NewPCG(seed, 7))
		f := newFilmed(schemas[seed%2], seed)
		delay := rng.IntN(100)
		for range 4 + rng.IntN(20) {
			f.spawn()
		}
		fail := func(err error) {
			t.Fatalf("seed %d, tick %d: %v\nrerun: NETLOOP_SEED=%d go test -run TestAMirroredWorldEqualsTheFeeds ./internal/netvar", seed, f.model.tick, err, seed)
		}
		for range 150 {
			if err := f.film(false); err != nil {
				fail(err)
			}
			if len(f.kept) <= delay {
				continue
			}
			shot, all, err := f.show(asFilmed)
			if err != nil {
				fail(err)
			}
			if digest := f.image.Digest(f.first); !all || digest != shot.digest {
				fail(fmt.Errorf("what was filmed at tick %d is shown as %x, was %x, all of it: %t", shot.tick, digest, shot.digest, all))
			}
			if err := f.watch(shot.tick, rng); err != nil {
				fail(err)
			}
		}
		for _, c := range f.watchers {
			equal += c.r.Stats().DigestsEqual
		}
		masked += f.image.stats.FullMasked
		hidden += f.w.stats.Hidden
	}
	if played >= 20 && (equal == 0 || masked == 0 || hidden == 0) {
		t.Errorf("the seeds do not reach everything: %d digests, %d masked, %d hidden", equal, masked, hidden)
	}
}

// After a pause without filming a slot may have another object: the mirrored world despawns the
// first one, and spawns the second a tick later.
func TestAMirrorCatchesUpAfterAPause(t *testing.T) {
	schemas := []schema{newSchema(t).withAgents(t), newSchema(t).withLightAgents(t)}
	late, played := 0, 0
	for seed := range seeds.Of(t, 20) {
		played++
		rng := rand.New(rand.NewPCG(seed, 8))
		f := newFilmed(schemas[seed%2], seed)
		for range 150 {
			pause := rng.IntN(3) > 0
			if err := f.film(pause); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if pause {
				continue
			}
			shot, all, err := f.show(twice)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if !all {
				late++
				if !f.mirror.Show(twice(shot.tick) + 1) {
					t.Fatalf("seed %d: tick %d is not all shown in the second try", seed, shot.tick)
				}
				f.image.Capture(twice(shot.tick) + 1)
			}
			if f.image.contents(f.first) != f.w.contents(f.camera) {
				t.Fatalf("seed %d: what was filmed at tick %d is shown otherwise", seed, shot.tick)
			}
		}
	}
	if played >= 20 && late == 0 {
		t.Error("the seeds never reach a slot that another object has taken meanwhile")
	}
}

// contents hashes the state that a client must have, without lifetimes.
func (w *World) contents(p *Peer) uint64 {
	h := uint64(state.HashStart)
	for slot := range p.entries {
		if p.entries[slot].phase == shown {
			h = state.HashObject(h, w.objects.Slots[slot], 0, w.valueHash(p, slot))
		}
	}
	return h
}
