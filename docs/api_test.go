package docs

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/admin"
	"github.com/netloop/netloop/internal/inspect/history"
	"github.com/netloop/netloop/internal/testing/golden"
)

// apiPage begins INSPECT-API.md; the rest is the answer of /api.
const apiPage = `# The API of the inspector

The pages of the admin listener with their parameters and the fields of their answers. A running server lists the same at
` + "`/api`" + ` as JSON. [INSPECT](INSPECT.md#api) has examples.

Names that end in ` + "`_ns`" + ` are times in nanoseconds. A dot separates the field of an object, ` + "`[]`" + ` means each element of a
list, and ` + "`{}`" + ` each value of an object whose keys are names. Values of game objects have the JSON of their types. Errors
are plain text with an HTTP status of 400 or more. Without ` + "`room`" + ` a page is about the default room.

` + "`make api`" + ` writes this page from the comments of the answers' Go types.
`

// The page has the fields of all answers of a running server and of an inspected recording, and
// each has a text.
func TestTheAPIIsDocumented(t *testing.T) {
	var b strings.Builder
	b.WriteString(apiPage)
	listed := map[string]string{}
	for _, l := range served(t) {
		writePage(t, &b, &l, listed)
	}
	b.WriteString("\n## An inspected recording\n\n`server inspect FILE` serves the pages of `/api/recording` and these. They need no role.\n")
	for _, l := range new(history.Recordings).List() {
		if strings.HasPrefix(l.Path, "/api/recordings") {
			writePage(t, &b, &l, listed)
		}
	}
	golden.Check(t, "INSPECT-API.md", b.String())
}

// served returns the answer of /api of a server.
func served(t *testing.T) (all []admin.Listed) {
	t.Helper()
	schema := netloop.NewSchema("documented", 1, 0)
	server, err := netloop.New(netloop.Config{Listen: "127.0.0.1:0", Admin: "127.0.0.1:0"}, nothing{schema})
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	answer, err := http.Get("http://" + server.AdminAddr().String() + "/api")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if err := json.NewDecoder(answer.Body).Decode(&all); err != nil {
		t.Fatal(err)
	}
	return all
}

// nothing is a game without a system.
type nothing struct{ schema *netloop.Schema }

func (n nothing) Schema() *netloop.Schema  { return n.schema }
func (nothing) Open(r *netloop.Room) error { return nil }

// writePage writes the section of a page with its fields. listed has the pages by their fields,
// because several pages have the same ones.
func writePage(t *testing.T, b *strings.Builder, l *admin.Listed, listed map[string]string) {
	t.Helper()
	fmt.Fprintf(b, "\n### %s %s\n\n", l.Method, l.Path)
	if l.Query != "" {
		fmt.Fprintf(b, "`%s`\n\n", l.Query)
	}
	fmt.Fprintf(b, "%s. Role: %s.\n", strings.ToUpper(l.Text[:1])+l.Text[1:], l.Role)
	if len(l.Topics) > 0 {
		b.WriteString("\n| topic | events have the JSON of | each |\n|---|---|---|\n")
		for _, topic := range l.Topics {
			fmt.Fprintf(b, "| `%s` | `%s` | %d ms |\n", topic.Topic, topic.Page, topic.Period)
		}
	}
	if len(l.Fields) == 0 {
		return
	}
	fields := fmt.Sprint(l.Fields)
	if other, ok := listed[fields]; ok {
		fmt.Fprintf(b, "\nThe fields are those of `%s`.\n", other)
		return
	}
	listed[fields] = l.Path
	b.WriteString("\n| field | type | |\n|---|---|---|\n")
	for _, f := range l.Fields {
		if f.Text == "" {
			t.Errorf("%s: the field %s has no comment in the Go type of the answer", l.Path, f.Name)
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", f.Name, f.Type, strings.ReplaceAll(f.Text, "|", "\\|"))
	}
}
