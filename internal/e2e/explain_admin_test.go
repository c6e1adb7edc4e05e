package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/netloop/netloop"
)

func TestExplainIsServedAsJSON(t *testing.T) {
	var ref netloop.Ref[dialState]
	ready := make(chan struct{})
	s, _ := serve(t, game{explainSchema, func(r *netloop.Room) {
		r.OnStart(func(t *netloop.Tick) { ref = dials.Spawn(t, dialState{}).Ref(); close(ready) })
	}}, 60)
	<-ready
	c := start(t, connectTo(t, s.Addr().String(), explainSchema), nil)
	get := func(query string) (int, map[string]any) {
		status, body := page(t, s, "/explain"+query)
		var v map[string]any
		if status == http.StatusOK {
			if err := json.Unmarshal([]byte(body), &v); err != nil {
				t.Fatalf("%s: %v in %s", query, err, body)
			}
		}
		return status, v
	}
	query := fmt.Sprintf("?client=%d&object=%v&field=Pos.X", c.ID(), ref)
	waitFor(t, func() bool { status, v := get(query); return status == http.StatusOK && v["reason"] == "not_edited" })
	_, v := get(query)
	if packets, ok := v["packets"].([]any); !ok || len(packets) > 0 {
		t.Errorf("packets is %v, want an empty list", v["packets"])
	}
	if v["field"] != "Pos.X" || v["class"] != "dial" || v["object"] != ref.String() || !strings.Contains(v["text"].(string), "the client has it") {
		t.Error(v)
	}
	if status, body := page(t, s, fmt.Sprintf("/explain?client=%d", c.ID())); status != http.StatusOK || !strings.Contains(body, `"objects":[{"object":"`+ref.String()+`","class":"dial","owner":0}],"more":0}`) ||
		!strings.Contains(body, `{"ask":"name one of them: add object=`+ref.String()+` to the question`) {
		t.Error(status, body)
	}
	if _, body := page(t, s, "/explain?client=99"); !strings.Contains(body, fmt.Sprintf("there is no client 99; there are %d\n", c.ID())) {
		t.Error(body)
	}
	for query, want := range map[string]int{
		"?client=": http.StatusBadRequest, "?client=x&object=0.1": http.StatusBadRequest, "?client=1&object=zero": http.StatusBadRequest,
		"?client=1&object=70000.1": http.StatusBadRequest, "?client=1&object=": http.StatusBadRequest,
		"?client=99&object=0.1": http.StatusNotFound, "?client=1&object=0.77": http.StatusNotFound,
		"?client=1&room=other&object=0.1": http.StatusNotFound, query + "s": http.StatusNotFound,
	} {
		if status, _ := get(query); status != want {
			t.Errorf("%q: %d, want %d", query, status, want)
		}
	}
}

// A request without a client, or without an object, lists the clients or objects and the next
// parameter. The list and the strings in it are bounded.
func TestExplainListsClientsAndObjects(t *testing.T) {
	joined := make(chan struct{})
	s, _ := serve(t, game{explainSchema, func(r *netloop.Room) {
		r.OnAdmit(func(_ context.Context, j *netloop.Join) error {
			j.Subject = strings.Repeat("é", 100)
			return nil
		})
		r.OnStart(func(t *netloop.Tick) {
			for range 1003 {
				dials.Spawn(t, dialState{})
			}
			lamps.Spawn(t, lamp{})
		})
		r.OnJoin(func(*netloop.Tick, *netloop.Client) error { close(joined); return nil })
	}}, 60)
	type answer struct {
		Ask     string
		Clients []struct {
			Client        netloop.ClientID
			Subject, Addr string
		}
		Objects []struct{ Object, Class string }
		More    int
	}
	get := func(query string) (a answer) {
		t.Helper()
		status, body := page(t, s, "/explain"+query)
		if err := json.Unmarshal([]byte(body), &a); err != nil || status != http.StatusOK {
			t.Fatalf("%q: %d, %v: %.200s", query, status, err, body)
		}
		return a
	}
	if a := get(""); len(a.Clients) != 0 || !strings.Contains(a.Ask, "no client has joined") {
		t.Errorf("%+v", a)
	}
	c := start(t, connectTo(t, s.Addr().String(), explainSchema), nil)
	<-joined
	a := get("?room=")
	if len(a.Clients) != 1 || a.Clients[0].Client != c.ID() || a.Clients[0].Addr == "" || a.More != 0 || !strings.Contains(a.Ask, fmt.Sprintf("add client=%d ", c.ID())) {
		t.Fatalf("%+v", a)
	}
	if name := a.Clients[0].Subject; name != strings.Repeat("é", 32)+"…" {
		t.Errorf("subject %q", name)
	}
	client := fmt.Sprintf("?client=%d", c.ID())
	if a := get(client); len(a.Objects) != 1000 || a.More != 4 {
		t.Errorf("%d objects and %d more", len(a.Objects), a.More)
	}
	a = get(client + "&class=lamp")
	if len(a.Objects) != 1 || a.Objects[0].Class != "lamp" || a.More != 0 || !strings.Contains(a.Ask, "add object="+a.Objects[0].Object+" ") {
		t.Errorf("%+v", a)
	}
	if a = get(client + "&class=chart"); len(a.Objects) != 0 || !strings.Contains(a.Ask, "no object has been spawned") {
		t.Errorf("%+v", a)
	}
	if status, body := page(t, s, "/explain"+client+"&class=tree"); status != http.StatusNotFound || !strings.Contains(body, `no class "tree"`) {
		t.Error(status, body)
	}
}
