package simulation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// Story is all that one seed draws: a server, and events in the order of time. It can be printed
// and shortened: an event without its room, bot or ticket has no effect.
type Story struct {
	Seed   uint64
	Parts  parts
	Server server
	Events []Event
	Length time.Duration // of the part with troubles
	Drain  time.Duration // at the end
}

// server is the drawn part of a server's Config.
type server struct {
	Room                 netloop.RoomSpec
	MaxRooms, MaxClients int
	LostAfter            time.Duration
	Auth, Opener         bool
	Record               bool // all rooms, for a replay; such a server is not restarted
	CheckEdits           bool
	RPC                  netloop.RPCLimits
	Incarnation          uint64
	DrainTimeout         time.Duration
	Misfits              bool // values that do not fit their fields are clamped
}

// configure sets the drawn fields of a Config.
func (s server) configure(c *netloop.Config) {
	c.Room, c.MaxRooms, c.MaxClients, c.RPC = s.Room, s.MaxRooms, s.MaxClients, s.RPC
	c.LostAfter, c.CheckEdits, c.Incarnation, c.DrainTimeout = s.LostAfter, s.CheckEdits, s.Incarnation, s.DrainTimeout
	if s.Misfits {
		c.CheckValues = false
	}
	if s.Auth {
		c.Auth = auth()
	}
}

// config returns the drawn fields of the configuration of a bot.
func (j *joining) config(room string) client.Config {
	return client.Config{
		Room: room, Spectate: j.Spectate, Reconnect: client.Reconnect{Off: j.Off, GiveUp: j.GiveUp}, LostAfter: j.LostAfter,
	}
}

// Event is one thing that happens at a time of the story. Do names a row of actions.
type Event struct {
	At      time.Duration
	Do      string
	Room    string
	Bot     int           // 0 is none
	N       uint64        // a number of the action's own: a ticket, an amount
	For     time.Duration // a duration of the action's own
	Command string        // of "command"

	Spec *netloop.RoomSpec
	Join *joining
	Link *netlooptest.Link
}

// joining is the configuration of a bot.
type joining struct {
	Subject    string
	Token      string // valid, spent, expired, elsewhere, forged
	Ticket     uint64 // of an event "reserve"; 0 is none
	Code       bool   // the code of the room instead of its name
	Spectate   bool
	FPS, PPM   int
	Offset     time.Duration
	Off        bool // does not reconnect
	GiveUp     time.Duration
	LostAfter  time.Duration
	Predict    bool
	Keys       uint64        // a key is pressed about every so many inputs; 0 is never
	FromTokens bool          // the token comes from a function, for each dial
	Addr       string        // shared with other bots; empty is one of its own
	Newer      bool          // a newer build
	Look       bool          // it draws its objects in each frame
	Vanish     int           // it disappears after so many bytes of its stream; 0 is never
	Breaks     time.Duration // its connection breaks so early; 0 is not
	Carrier    string        // in real time
	Forge      string        // the bytes of its handshake are changed: "up" or "down"
}

// String prints the event on one line, without fields that are zero.
func (e Event) String() string {
	b := fmt.Appendf(nil, "%9.3fs %s", e.At.Seconds(), e.Do)
	add := func(name string, value any, zero bool) {
		if !zero {
			b = fmt.Appendf(b, " %s=%v", name, value)
		}
	}
	add("command", e.Command, e.Command == "")
	add("room", fmt.Sprintf("%q", e.Room), e.Room == "" && (e.Bot > 0 || e.Command == ""))
	add("bot", e.Bot, e.Bot == 0)
	add("n", e.N, e.N == 0)
	add("for", e.For, e.For == 0)
	if e.Spec != nil {
		b = append(b, ' ')
		b = append(b, brief(*e.Spec)...)
	}
	if e.Join != nil {
		b = append(b, ' ')
		b = append(b, brief(*e.Join)...)
	}
	if e.Link != nil {
		b = append(b, ' ')
		b = append(b, brief(*e.Link)...)
	}
	return string(b)
}

// brief prints the fields of a struct that are not zero.
func brief(v any) string {
	text := fmt.Sprintf("%+v", v)
	var kept []string
	for _, field := range strings.Fields(strings.Trim(text, "{}")) {
		_, value, _ := strings.Cut(field, ":")
		if value != "" && value != "0" && value != "0s" && value != "false" && value != "<nil>" {
			kept = append(kept, field)
		}
	}
	return "{" + strings.Join(kept, " ") + "}"
}

// String prints the story.
func (s *Story) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, parts %05b, %v of troubles, a drain of %v, server %s\n", s.Seed, s.Parts, s.Length, s.Drain, brief(s.Server))
	for _, e := range s.Events {
		fmt.Fprintln(&b, e)
	}
	return b.String()
}

func (s *Story) sort() {
	slices.SortStableFunc(s.Events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
}
