package netvar

import "math"

// Budget bounds the bytes of one client's records by a token bucket. It gains PerTick bytes with
// each tick and holds at most Burst. A record may be sent while the bucket is positive, and may
// make it negative: otherwise a record larger than the bucket would never be sent. PerTick 0 means
// no budget. Headers are not counted, so a snapshot without records costs nothing.
type Budget struct{ PerTick, Burst int }

// MaxBudget bounds PerTick, in bytes: 1 MiB is about 950 packets of the largest size.
const MaxBudget = 1 << 20

// bucket is the state of a client's budget.
type bucket struct {
	Budget
	tokens int
	tick   uint64 // tick of the last fill
}

// SetBudget changes the client's budget; PerTick is limited to MaxBudget, and Burst is at least
// PerTick. If the client had none, the bucket is full at first. A negative balance is kept.
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

// fill adds the bytes gained since the last call. It returns the balance in bytes, or math.MaxInt
// without a budget.
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

// inBits converts bytes to bits, up to the range of a 32-bit int, which is more than any snapshot
// takes.
func inBits(bytes int) int { return 8 * min(bytes, math.MaxInt32/8) }

// spend subtracts the bytes sent.
func (b *bucket) spend(bytes int) {
	if b.PerTick > 0 {
		b.tokens -= bytes
	}
}
