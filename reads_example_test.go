package netloop_test

import "github.com/netloop/netloop"

// Frigate has fields for all clients, for its owner, and for its side.
type Frigate struct {
	X, Y int32
	Side uint8
	Ammo int32 `net:"read=owner"`
	Plan struct {
		Goal netloop.Ref[Frigate]
		Note string `net:"max=32"`
	} `net:"read=side"`
}

var (
	seaSchema = netloop.NewSchema("sea", 1, 0)
	frigates  = netloop.NewClass[Frigate](seaSchema, "frigate")
)

type seaGame struct{}

func (seaGame) Schema() *netloop.Schema { return seaSchema }

func (seaGame) Open(r *netloop.Room) error {
	sides := [2]*netloop.ClientGroup{netloop.NewClientGroup(), netloop.NewClientGroup()}
	frigates.Reads(r, "side", func(o *netloop.Object[Frigate]) netloop.Target {
		return netloop.InGroup(sides[o.State().Side])
	})
	r.OnJoin(func(t *netloop.Tick, c *netloop.Client) error {
		side := uint8(c.ID() % 2)
		sides[side].Add(t, c) // From now on it reads the plans of its side.
		frigates.Spawn(t, Frigate{Side: side, Ammo: 20}, netloop.OwnedBy(c.ID()))
		return nil
	})
	return nil
}

// Fields for some clients only: the owner's by a tag alone, a side's by a rule.
func ExampleClass_Reads() {
	if _, err := netloop.New(netloop.Config{}, seaGame{}); err != nil {
		panic(err)
	}
}
