package cluster_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/netloop/netloop/cluster"
	"github.com/netloop/netloop/cluster/clustertest"
)

// memoryBed is a Memory in the virtual time of a bubble.
type memoryBed struct {
	*cluster.Memory
	ids map[cluster.Cluster]string
}

func newMemoryBed() *memoryBed {
	begin := time.Now()
	return &memoryBed{cluster.NewMemory(7, func() time.Duration { return time.Since(begin) }), map[cluster.Cluster]string{}}
}

func (b *memoryBed) Beat() time.Duration  { return cluster.Beat }
func (b *memoryBed) New() cluster.Cluster { return named{b.Member(), b} }

// named notes the id of a member, for Freeze.
type named struct {
	cluster.Cluster
	bed *memoryBed
}

func (n named) Join(ctx context.Context, m cluster.Member) error {
	n.bed.ids[n] = m.Server.ID
	return n.Cluster.Join(ctx, m)
}

func (b *memoryBed) Freeze(c cluster.Cluster, frozen bool) { b.Memory.Freeze(b.ids[c], frozen) }

func (b *memoryBed) Pass(d time.Duration) {
	for ; d > 0; d -= cluster.BoardInterval {
		time.Sleep(min(d, cluster.BoardInterval))
		b.Settle()
	}
}

func TestMemoryFulfilsTheContract(t *testing.T) {
	clustertest.Run(t, func(t *testing.T, test func(*testing.T, clustertest.Bed)) {
		synctest.Test(t, func(t *testing.T) { test(t, newMemoryBed()) })
	})
}
