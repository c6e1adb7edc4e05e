package agonestest

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"
)

// request is one request of the conformance list, with parts of its answer.
type request struct {
	name         string // in Agones' list
	method, path string
	body         string // "" is no body
	status       int    // 0 is 200
	want         string // JSON: the named fields of the answer
}

// conformance has the requests of Agones' conformance list, its default part and that of counters
// and lists, in an order that a new local sidecar answers as written.
var conformance = []request{
	{"gameserver", "GET", "/gameserver", "", 0, `{"object_meta":{"name":"local","namespace":"default","deletion_timestamp":"0"},"spec":{"health":{"disabled":false}},"status":{"counters":{"rooms":{"count":"1","capacity":"10"}},"lists":{"players":{"values":["test0","test1","test2"],"capacity":"100"}}}}`},
	{"ready", "POST", "/ready", "{}", 0, `{}`},
	{"gameserver", "GET", "/gameserver", "", 0, `{"status":{"state":"Ready"}}`},
	{"health", "POST", "/health", "{}", 0, `{}`},
	{"health", "POST", "/health", "", 400, ""},
	{"reserve", "POST", "/reserve", `{"seconds":"60"}`, 0, `{}`},
	{"gameserver", "GET", "/gameserver", "", 0, `{"status":{"state":"Reserved"}}`},
	{"allocate", "POST", "/allocate", "{}", 0, `{}`},
	{"gameserver", "GET", "/gameserver", "", 0, `{"status":{"state":"Allocated"}}`},
	{"setlabel", "PUT", "/metadata/label", `{"key":"game","value":"arena"}`, 0, `{}`},
	{"setannotation", "PUT", "/metadata/annotation", `{"key":"version","value":"arena 2.1, netloop v1"}`, 0, `{}`},
	{"gameserver", "GET", "/gameserver", "", 0, `{"object_meta":{"labels":{"agones.dev/sdk-game":"arena"},"annotations":{"agones.dev/sdk-version":"arena 2.1, netloop v1"}}}`},
	{"getcounter", "GET", "/v1beta1/counters/rooms", "", 0, `{"name":"rooms","count":"1","capacity":"10"}`},
	{"updatecounter", "PATCH", "/v1beta1/counters/rooms", `{"countDiff":"2"}`, 0, `{"name":"rooms","count":"3","capacity":"10"}`},
	{"setcountcounter", "PATCH", "/v1beta1/counters/rooms", `{"count":"7"}`, 0, `{"count":"7","capacity":"10"}`},
	{"setcountcounter", "PATCH", "/v1beta1/counters/rooms", `{"count":"0"}`, 0, `{"count":"0","capacity":"10"}`},
	{"setcountcounter", "PATCH", "/v1beta1/counters/rooms", `{"count":"11"}`, 500, `{"code":2}`},
	{"setcapacitycounter", "PATCH", "/v1beta1/counters/rooms", `{"capacity":"20"}`, 0, `{"count":"0","capacity":"20"}`},
	{"getcounter", "GET", "/v1beta1/counters/none", "", 500, `{"code":2,"message":"not found. none Counter not found"}`},
	{"getlist", "GET", "/v1beta1/lists/players", "", 0, `{"name":"players","values":["test0","test1","test2"],"capacity":"100"}`},
	{"updatelist", "PATCH", "/v1beta1/lists/players", `{"values":["a","b"]}`, 0, `{"values":["a","b"],"capacity":"100"}`},
	{"updatelist", "PATCH", "/v1beta1/lists/players", `{"capacity":"3"}`, 0, `{"values":["a","b"],"capacity":"3"}`},
	{"addlistvalue", "POST", "/v1beta1/lists/players:addValue", `{"value":"c"}`, 0, `{"values":["a","b","c"],"capacity":"3"}`},
	{"addlistvalue", "POST", "/v1beta1/lists/players:addValue", `{"value":"d"}`, 500, `{"code":2}`},
	{"removelistvalue", "POST", "/v1beta1/lists/players:removeValue", `{"value":"b"}`, 0, `{"values":["a","c"],"capacity":"3"}`},
	{"updatelist", "PATCH", "/v1beta1/lists/players", `{"values":["a","b","c","d","e"]}`, 0, `{"values":["a","b","c"],"capacity":"3"}`},
	{"updatelist", "PATCH", "/v1beta1/lists/players", `{"values":[]}`, 0, `{"values":[],"capacity":"3"}`},
	{"ready", "POST", "/ready", "{", 400, `{"code":3}`},
	{"", "GET", "/none", "", 404, `{"code":5}`},
	{"shutdown", "POST", "/shutdown", "{}", 0, `{}`},
	{"gameserver", "GET", "/gameserver", "", 0, `{"status":{"state":"Shutdown"}}`},
}

// answerTime is the limit of an answer.
const answerTime = 10 * time.Second

// Conformance sends the requests of Agones' conformance list to a new local sidecar, and compares
// its answers with those of Agones.
func Conformance(t *testing.T, base string) {
	t.Helper()
	states := watched(t, base)
	if got := <-states; got != "Ready" {
		t.Errorf("watch: the first state is %q", got)
	}
	for _, r := range conformance {
		status, answer := send(t, r.method, base+r.path, r.body)
		if want := cmp.Or(r.status, http.StatusOK); status != want {
			t.Errorf("%s %s %s: status %d, not %d: %s", r.method, r.path, r.body, status, want, answer)
			continue
		}
		if r.want != "" {
			compare(t, r, answer)
		}
	}
	for got := range states { // States in between may be skipped.
		if got == "Shutdown" {
			return
		}
	}
	t.Errorf("watch: the state Shutdown does not arrive within %v", answerTime)
}

// send sends a request with a limit of its time.
func send(t *testing.T, method, url, body string) (status int, answer string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), answerTime)
	defer cancel()
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, content)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// compare reports fields of the answer that differ from the wanted ones.
func compare(t *testing.T, r request, answer string) {
	t.Helper()
	var got, want any
	if err := json.Unmarshal([]byte(answer), &got); err != nil {
		t.Errorf("%s %s: %v in %q", r.method, r.path, err, answer)
		return
	}
	if err := json.Unmarshal([]byte(r.want), &want); err != nil {
		t.Fatal(err)
	}
	if !contains(got, want) {
		t.Errorf("%s %s %s: %s does not contain %s", r.method, r.path, r.body, answer, r.want)
	}
}

// contains reports whether got has all fields of want.
func contains(got, want any) bool {
	fields, ok := want.(map[string]any)
	if !ok {
		return reflect.DeepEqual(got, want)
	}
	has, ok := got.(map[string]any)
	if !ok {
		return false
	}
	for name, w := range fields {
		if g, ok := has[name]; !ok || !contains(g, w) {
			return false
		}
	}
	return true
}

// watched returns the states of a watch, until the test ends or answerTime is over.
func watched(t *testing.T, base string) <-chan string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), answerTime)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/watch/gameserver", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req) //nolint:bodyclose // The goroutine below closes it.
	if err != nil {
		t.Fatal(err)
	}
	states := make(chan string, len(conformance)) // More than the messages of the test.
	go func() {
		defer close(states)
		defer func() { _ = resp.Body.Close() }()
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			var m struct {
				Result struct{ Status struct{ State string } }
			}
			if json.Unmarshal(lines.Bytes(), &m) != nil {
				return
			}
			select {
			case states <- m.Result.Status.State:
			case <-ctx.Done():
				return
			}
		}
	}()
	return states
}

// Names returns the names of the requests that Conformance sends, each once.
func Names() (names []string) {
	seen := map[string]bool{"": true}
	for _, r := range append(conformance, request{name: "watch"}) {
		if !seen[r.name] {
			seen[r.name] = true
			names = append(names, r.name)
		}
	}
	return names
}
