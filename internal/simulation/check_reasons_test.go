package simulation

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
)

// reasons checks why clients are closed. The documents: the comments of netloop.Closed, Code and
// Kick.
//
//   - A client is closed with the code and the text of the game, the operator or the server that
//     closed it, and with no code of a fault: no bot violates the protocol.
type reasons struct {
	p       *play
	ends    map[reason]bool // with which rooms were told to end
	kicked  map[int]bool    // bots
	players map[string]bool // their players
}

type reason struct {
	code netloop.Code
	text string
}

func newReasons(p *play) reasons {
	return reasons{p: p, ends: map[reason]bool{}, kicked: map[int]bool{}, players: map[string]bool{}}
}

// tell notes that a room is told to end, and returns the text of the reason.
func (r *reasons) tell(room string, code netloop.Code) string {
	text := fmt.Sprintf("the story ends room %q", room)
	r.ends[reason{code, text}] = true
	return text
}

// kick notes that the game kicks the client of a bot.
func (r *reasons) kick(bot int) {
	r.kicked[bot] = true
	if g := r.p.bots[bot]; g != nil && g.join.Subject != "" {
		r.players[g.join.Subject] = true
	}
}

// closed checks the reason that a bot was told.
func (r *reasons) closed(g *bot, s client.State) {
	if g.forges {
		return
	}
	of := reason{s.Code, s.Text}
	ok := true
	switch s.Code {
	case netloop.CodeLeft:
		ok = g.gone || r.p.real // Its program has ended.
	case netloop.CodeGame:
		ok = r.ends[of] && (!g.played || strings.Contains(s.Text, strconv.Quote(g.c.Room())))
	case netloop.CodeClosing:
		ok = s.Text == "the server is closing" || s.Text == "nobody is in the room" || r.ends[of]
	case netloop.CodeFlood:
		ok = r.p.floods
	case netloop.CodeInternal:
		ok = r.p.planned > 0 || r.p.keeps.trouble || r.p.real && !g.played // A handshake ended.
	case netloop.CodeKicked:
		// A newcomer may have tried to take over a kicked client that had not left yet.
		ok = (r.kicked[g.n] || !g.played && r.players[g.join.Subject]) && s.Text == "the story kicks"
	case netloop.CodeReplaced:
		ok = s.Text == ""
	case netloop.CodeRoomUnknown, netloop.CodeRefused, netloop.CodeFull, netloop.CodeBusy, netloop.CodeTicket,
		netloop.CodeUnauthenticated, netloop.CodeTimeout, netloop.CodeLost:
	default:
		ok = false
	}
	if !ok {
		r.p.fail("reasons", "bot %d of room %q is closed: %v %q", g.n, g.c.Room(), s.Code, s.Text)
	}
}
