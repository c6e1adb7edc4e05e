package netvar

import "math"

// Budget bounds what the records of one client take: a token bucket that gains PerTick bytes
// with every tick and holds at most Burst. A record may start while the bucket is positive, and
// may overdraw it: otherwise one that is larger than the bucket would never go. PerTick 0 is no
// budget. Headers are not counted, so a snapshot without records costs nothing.
type Budget struct{ PerTick, Burst int }

// MaxBudget bounds PerTick: a hundred times what ten packets carry.
const MaxBudget = 1 << 20

// bucket is the state of a client's budget.
type bucket struct {
	Budget
	tokens int
	tick   uint64 // up to which it has gained
}

// SetBudget gives the client another budget. The bucket of a client that had none is full at
// first; what is overdrawn stays so.
func (p *Peer) SetBudget(to Budget) {
	b := &p.bucket
	to.PerTick = min(max(to.PerTick, 0), MaxBudget)
	to.Burst = min(max(to.Burst, to.PerTick), math.MaxInt32)
	if b.PerTick == 0 {
		b.tokens, b.tick = to.Burst, p.tick
	}
	b.Budget, b.tokens = to, min(b.tokens, to.Burst)
}

// Budget returns the client's budget.
func (p *Peer) Budget() Budget { return p.bucket.Budget }

// fill adds what has come in since, and returns what there is.
func (b *bucket) fill(tick uint64) int {
	if b.PerTick == 0 {
		return math.MaxInt
	}
	gains := tick - b.tick
	if gains > uint64(b.Burst-b.tokens)/uint64(b.PerTick) {
		b.tokens = b.Burst
	} else {
		b.tokens += int(gains) * b.PerTick
	}
	b.tick = tick
	return b.tokens
}

// inBits is a number of bytes in bits, as far as an int of 32 bits goes: that is more than any
// snapshot takes.
func inBits(bytes int) int { return 8 * min(bytes, math.MaxInt32/8) }

// spend takes what was sent.
func (b *bucket) spend(bytes int) {
	if b.PerTick > 0 {
		b.tokens -= bytes
	}
}
