package slots

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"math/rand/v2"

	"github.com/netloop/netloop/internal/netvar/bitset"
	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/netvar/state"
)

// A client receives the ids of the objects that it has. These ids must reveal neither the existence
// nor the number of other objects. So there are two kinds of blocks of 64 slots:
//
//	open    for objects that all clients have from their spawn on. The slot that was freed last
//	        is reused first, and the generations of a slot count up: these ids reveal only
//	        objects that all clients had.
//	veiled  for objects with an audience or in a space. A slot is drawn from the free slots of
//	        all veiled blocks. The generations of a slot look random, so a client does not
//	        notice other objects that had the slot meanwhile. Some slots of each block are
//	        closed, which means never used: an unseen slot does not imply a hidden object.
//
// The blocks of each kind have fixed places, so ids of one kind do not reveal the size of the
// other. Another veiled block is opened when a random share of the veiled slots is used, so the
// highest slot that a client sees gives only a rough bound on the number of veiled objects: see
// docs/adr/0059.
const (
	// One of every BlocksPer blocks is of the less frequent kind: veiled, or in a world with a
	// space open. Each slot takes an entry in each peer, even if it is not used.
	BlocksPer = 4
	// maxClosed bounds the closed slots of a veiled block.
	maxClosed = 15
	// opaqueBits is the size, in bits, of the first generations of a veiled slot, each of which is
	// used once. On the wire such a generation takes 23 bits more than generation 1.
	opaqueBits = 16
)

// Allocator allocates slots and generations for the objects of a world.
type Allocator struct {
	gens   []uint32 // by slot: number of objects it has had
	taken  bitset.Set
	used   int   // taken slots
	free   []int // freed slots outside of veiled blocks, in the order of release
	next   int   // first slot outside of veiled blocks that was never used
	spaces bool  // veiled blocks are the frequent kind; fixed at the first allocation

	blocks []int      // veiled blocks in use
	closed bitset.Set // their closed slots
	usable int        // number of their slots that are not closed
	veiled int        // number of their taken slots
	spare  int        // another veiled block is taken if at most this many usable slots are free

	random *rand.Rand
	cipher cipher.Block // encrypts generations
	buf    [2][aes.BlockSize]byte
}

// Seed makes ids unpredictable without the seed. It must be called before the first allocation.
func (s *Allocator) Seed(seed uint64) {
	key := sha256.Sum256(binary.LittleEndian.AppendUint64([]byte("netvar slots"), seed))
	s.random = rand.New(rand.NewChaCha8(key)) //nolint:gosec // Replays need the same ids.
	s.cipher, _ = aes.NewCipher(key[:])       // keys of this size are always valid
}

// Full reports whether all slots are taken.
func (s *Allocator) Full() bool { return s.used == packet.MaxSlots }

// slot returns a free slot of a kind, or -1.
func (s *Allocator) slot(veiled bool) int {
	if veiled {
		return s.veiledSlot()
	}
	return s.openSlot()
}

// Give allocates an id of a veiled or an open slot, or of any free slot if no slot of that kind is
// free. spaces reports whether the world has a space; its value in the first call is used for all
// calls. The caller checks Full first.
func (s *Allocator) Give(veiled, spaces bool) state.ID {
	if s.next == 0 && len(s.blocks) == 0 {
		s.spaces = spaces
	}
	slot := s.slot(veiled)
	for k := 0; slot < 0; k++ { // all slots of the kind are taken
		if left := ^s.taken.Word(k); left != 0 {
			slot = k<<6 + bits.TrailingZeros64(left)
		}
	}
	for len(s.gens) <= slot {
		s.gens = append(s.gens, 0)
	}
	if s.gens[slot]++; s.gens[slot] == 0 {
		s.gens[slot] = 1 // after 2^32 lifetimes of one slot; 0 would give slot 0 the nil id
	}
	s.taken.Add(slot)
	s.used++
	if !s.IsVeiled(slot >> 6) {
		return state.MakeID(slot, s.gens[slot])
	}
	s.veiled++
	return state.MakeID(slot, s.opaque(slot, s.gens[slot]))
}

// Release frees a slot.
func (s *Allocator) Release(slot int) {
	s.taken.Remove(slot)
	s.used--
	if s.IsVeiled(slot >> 6) {
		s.veiled--
	} else {
		s.free = append(s.free, slot)
	}
}

// IsVeiled reports whether a block is of the veiled kind.
func (s *Allocator) IsVeiled(block int) bool { return block%BlocksPer == 1 != s.spaces }

// openSlot returns a free slot outside of veiled blocks, or -1.
func (s *Allocator) openSlot() int {
	for n := len(s.free); n > 0; n = len(s.free) {
		slot := s.free[n-1]
		if s.free = s.free[:n-1]; !s.taken.Has(slot) {
			return slot
		}
	}
	for ; s.next < packet.MaxSlots; s.next++ {
		if s.IsVeiled(s.next >> 6) {
			s.next |= 63
		} else if !s.taken.Has(s.next) {
			s.next++
			return s.next - 1
		}
	}
	return -1
}

// veiledSlot returns a random free slot of the veiled blocks, or -1.
func (s *Allocator) veiledSlot() int {
	for s.usable-s.veiled <= s.spare && s.openBlock() {
	}
	free := 0
	for _, k := range s.blocks {
		free += 64 - bits.OnesCount64(s.taken.Word(k)|s.closed.Word(k))
	}
	if free == 0 {
		return -1
	}
	n := s.random.IntN(free)
	for _, k := range s.blocks {
		m := ^(s.taken.Word(k) | s.closed.Word(k))
		if some := bits.OnesCount64(m); n >= some {
			n -= some
			continue
		}
		for range n {
			m &= m - 1
		}
		return k<<6 + bits.TrailingZeros64(m)
	}
	panic("unreachable")
}

// openBlock adds a veiled block. It reports false if there is none left.
func (s *Allocator) openBlock() bool {
	k := 0
	if n := len(s.blocks); n > 0 {
		k = s.blocks[n-1] + 1
	}
	for !s.IsVeiled(k) {
		k++
	}
	if k >= packet.MaxSlots>>6 {
		return false
	}
	s.blocks = append(s.blocks, k)
	closed := s.random.IntN(maxClosed + 1)
	for range closed {
		s.closed.Add(k<<6 + s.random.IntN(64)) // the same slot may be selected twice
	}
	s.usable += 64 - bits.OnesCount64(s.closed.Word(k))
	s.spare = s.usable/8 + s.random.IntN(s.usable*3/8)
	return true
}

// opaque returns the generation of the n-th object of a veiled slot. All generations of a slot are
// different.
func (s *Allocator) opaque(slot int, n uint32) uint32 {
	half := opaqueBits / 2
	if n >= 1<<opaqueBits {
		half = 16
	}
	for {
		n = s.permute(uint32(slot), n, half)
		// 0 is invalid, and all numbers of the first size are used before the first of the second
		// size
		if half == 16 && n >= 1<<opaqueBits || half < 16 && n > 0 {
			return n
		}
	}
}

// permute is a permutation of the numbers of 2*half bits, different for each slot: a Feistel
// network with AES as the round function.
func (s *Allocator) permute(slot, n uint32, half int) uint32 {
	mask := uint32(1)<<half - 1
	left, right := n>>half, n&mask
	for round := range uint32(8) {
		in, out := s.buf[0][:], s.buf[1][:]
		binary.LittleEndian.PutUint32(in, slot)
		binary.LittleEndian.PutUint32(in[4:], right)
		binary.LittleEndian.PutUint32(in[8:], round<<8|uint32(half))
		s.cipher.Encrypt(out, in)
		left, right = right, left^binary.LittleEndian.Uint32(out)&mask
	}
	return left<<half | right
}
