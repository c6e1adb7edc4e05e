package netloop

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/netloop/netloop/internal/admin"
	"github.com/netloop/netloop/internal/netvar"
)

// explained is the answer of /explain: an Explanation and its sentence.
type explained struct {
	Explanation
	Text string `json:"text"`
}

// toExplain is the answer of /explain to an incomplete query: the next step, and the candidates.
// More is the number of further candidates, which are not listed.
type toExplain struct {
	Ask     string         `json:"ask"`
	Clients []listedClient `json:"clients,omitempty"`
	Objects []listedObject `json:"objects,omitempty"`
	More    int            `json:"more"`
}

type listedClient struct {
	Client  ClientID `json:"client"`
	Subject string   `json:"subject"` // set by admission
	Addr    string   `json:"addr"`
}

type listedObject struct {
	Object string   `json:"object"`
	Class  string   `json:"class"`
	Owner  ClientID `json:"owner"`
}

const (
	// maxListed bounds the entries of a list; a longer page is not readable.
	maxListed = 1000
	// maxSubject bounds the names in it, in bytes: a game may set any text.
	maxSubject = 64
)

// explainPage answers /explain: for room, client, object and field the result of Object.Explain;
// without a client it lists the clients, and without an object the objects.
func (s *Server) explainPage(ctx context.Context, query url.Values) (any, error) {
	r, err := s.roomAsked(query)
	if err != nil {
		return nil, err
	}
	if !query.Has("client") {
		return r.e.Questions.Ask(ctx, func(uint64) any { return r.listClients() })
	}
	client, err := strconv.ParseUint(query.Get("client"), 10, 64)
	if err != nil {
		return nil, &admin.Refusal{Status: http.StatusBadRequest, Text: "client: give the number of a client, as in /explain?client=1&object=17.3&field=Pos.X; without it all clients are listed"}
	}
	id, ok := netvar.ParseID(query.Get("object"))
	if !ok && query.Has("object") {
		return nil, &admin.Refusal{Status: http.StatusBadRequest, Text: "object: give slot and generation, such as 17.3; without it all objects are listed"}
	}
	v, err := r.e.Questions.Ask(ctx, func(uint64) any {
		c, ok := r.e.Client(client)
		if !ok {
			return &admin.Refusal{Status: http.StatusNotFound, Text: fmt.Sprintf("there is no client %d; %s", client, r.someClients())}
		}
		if !query.Has("object") {
			return r.listObjects(query.Get("class"))
		}
		return r.explainTo(clientOf(c), id, query.Get("field"))
	})
	if refusal, ok := v.(*admin.Refusal); ok {
		return nil, refusal
	}
	return v, err
}

// maxNamed bounds the clients that an answer names: it is for a developer with a few of them.
const maxNamed = 20

// someClients returns a text with the ids of the room's clients.
func (r *Room) someClients() string {
	list := r.e.Clients()
	if len(list) == 0 {
		return "there is none at all"
	}
	var b strings.Builder
	b.WriteString("there are")
	for _, c := range list[:min(len(list), maxNamed)] {
		fmt.Fprintf(&b, " %d", c.ID())
	}
	if more := len(list) - maxNamed; more > 0 {
		fmt.Fprintf(&b, " and %d more", more)
	}
	return b.String()
}

// explainTo returns an explained, or an *admin.Refusal.
func (r *Room) explainTo(c *Client, id netvar.ID, field string) any {
	o, ok := r.e.World().Get(id)
	if !ok {
		return &admin.Refusal{Status: http.StatusNotFound, Text: fmt.Sprintf("there is no object %v: it is despawned, or never was", id)}
	}
	x, err := r.explain(c, o, field)
	if err != nil {
		return &admin.Refusal{Status: http.StatusNotFound, Text: err.Error()}
	}
	return explained{x, x.String()}
}

func (r *Room) listClients() toExplain {
	all := r.e.Clients()
	page := toExplain{Ask: "nobody is here: ask again when a client has joined", More: max(0, len(all)-maxListed)}
	for i, c := range all[:min(len(all), maxListed)] {
		if i == 0 {
			page.Ask = fmt.Sprintf("name one of them: add client=%d to the question, and then an object and a field of it, to hear why the client was sent the value, or was not", c.ID())
		}
		name := c.Join().Subject
		if len(name) > maxSubject {
			name = strings.ToValidUTF8(name[:maxSubject], "") + "…"
		}
		page.Clients = append(page.Clients, listedClient{ClientID(c.ID()), name, c.Join().Addr})
	}
	return page
}

// listObjects lists the objects of a class, or of all classes.
func (r *Room) listObjects(only string) any {
	page := toExplain{Ask: "there is no object: ask again when one is spawned"}
	known := only == ""
	for _, class := range r.schema.classes {
		name := class.nv.Name()
		if only != "" && name != only {
			continue
		}
		known = true
		page.More += r.e.World().Len(class.nv)
		for o := range r.e.World().All(class.nv) {
			if len(page.Objects) == maxListed {
				break
			}
			page.Objects = append(page.Objects, listedObject{o.ID().String(), name, ClientID(o.Owner())})
			page.More--
		}
	}
	if !known {
		return &admin.Refusal{Status: http.StatusNotFound, Text: fmt.Sprintf("there is no class %.64q", only)}
	}
	if len(page.Objects) > 0 {
		page.Ask = fmt.Sprintf("name one of them: add object=%s to the question, and field= with one of its fields or a struct of them; class= lists those of one class", page.Objects[0].Object)
	}
	return page
}
