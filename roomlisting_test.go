package netloop

import (
	"fmt"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/directory"
	"github.com/netloop/netloop/internal/schema"
)

// BenchmarkRoomsWhere finds 20 of 10 000 rooms by their published Info.
func BenchmarkRoomsWhere(b *testing.B) {
	type match struct {
		Map   string
		Round int32
	}
	listing := directory.NewListing[listingEntry]()
	for i := range 10_000 {
		info := match{Map: fmt.Sprint("map ", i%500), Round: int32(i % 7)}
		packed, err := schema.Pack(info)
		if err != nil {
			b.Fatal(err)
		}
		listing.Set(uint64(i), &listingEntry{fmt.Sprint(i), "table", i % 4, 4, packed, &info})
	}
	f := RoomFilter[match]{Kind: "table", Free: 1, Where: func(l RoomListing[match]) bool { return l.Info.Map == "map 77" }}
	for b.Loop() {
		if got := f.list(listing.List(time.Hour)); len(got) != 20 {
			b.Fatalf("%d rooms are listed", len(got))
		}
	}
}
