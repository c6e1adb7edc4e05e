package history_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	arenav1 "github.com/netloop/netloop/examples/arena/proto/arena/v1"
	"github.com/netloop/netloop/internal/inspect/history"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/recording"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/testing/golden"
	"github.com/netloop/netloop/internal/transport"
)

// facts is a tick with a fact of each kind.
func facts(t *testing.T) *recording.Tick {
	said, err := recording.AppendValue(nil, &arenav1.Say{Text: "hi"})
	if err != nil {
		t.Fatal(err)
	}
	const say, other = 1, 99
	message := func(method uint32, stage uint8, payload string) recording.Arrival {
		return recording.Arrival{Kind: transport.MessageArrived, Client: 7, Message: transport.Message{Method: method, Stage: stage, Payload: []byte(payload), Call: 5}}
	}
	early, late := message(say, uint8(loop.Update), "\n\x02hi"), message(say, 0, "\n\x09hi")
	early.At, late.At = time.Second-3, time.Second+3 // before and after the start of the tick
	return &recording.Tick{
		Input: loop.Input{Tick: 7, Start: time.Second},
		Arrivals: []recording.Arrival{
			early, late, message(other, 200, "abc"),
			{Kind: transport.Inputs, Client: 7, State: []byte{0xff}},
			{Kind: transport.Joined, Client: 8, Entrance: &recording.Entrance{Addr: "192.0.2.1:5"}}, {Kind: transport.Joined, Client: 8},
			{Kind: transport.Gone, Client: 8, Closed: &transport.Closed{Code: transport.CodeKicked, Text: "bye"}}, {Kind: transport.Gone, Client: 8},
			{Kind: transport.MoveAsked, Client: 8},
		},
		Posts: []recording.Post{
			{Method: say, Stage: uint8(loop.PreLateUpdate), Msg: said, From: &recording.Sender{Room: "lobby"}}, {Method: say, Msg: []byte{9}}, {Method: other, Stage: 200},
		},
		Results: []recording.Result{{Work: 3}, {Work: 4, Err: &recording.Error{Text: "reading: no"}}},
	}
}

// Each kind of fact has its row. The role read gets neither values nor the texts of errors, and
// messages of a secret method are shown to no role.
func TestEachFactHasItsRow(t *testing.T) {
	whole, say := openedWithSay(t)
	r, err := whole.Made(facts(t))
	if err != nil {
		t.Fatal(err)
	}
	a, err := r.Messages(7)
	b, err2 := r.Restricted().Messages(7)
	say.Secret = true
	c, err3 := r.Messages(7)
	say.Secret = false
	if err != nil || err2 != nil || err3 != nil || a.More != 0 || b.More != 0 {
		t.Fatal(err, err2, err3)
	}
	var text strings.Builder
	for _, rows := range [][]history.Arrival{a.Arrivals, b.Arrivals, c.Arrivals} {
		for _, row := range rows {
			line, err := json.Marshal(row)
			if err != nil {
				t.Fatal(err)
			}
			text.Write(append(line, '\n'))
		}
		text.WriteString("\n")
	}
	golden.Check(t, "testdata/facts.txt", text.String())
	ticks, err := r.Ticks(0, 0, 10)
	if err != nil || ticks.Methods["say"][0] != 2 || ticks.Methods["(method 99)"][0] != 1 || ticks.Messages[0] != 3 || ticks.Posts[0] != 3 || ticks.Results[0] != 2 || ticks.Drops[0] != 2 || ticks.Resumes[0] != 2 || ticks.Inputs[0] != 1 {
		t.Errorf("%+v: %v", ticks, err)
	}
	// An answer has at most 2000 rows and 4 MiB of values: two of these messages, which are base64.
	large, many := facts(t), facts(t)
	large.Input.Tick, many.Input.Tick = 8, 9
	for i := range 3 {
		large.Arrivals[i].Message = transport.Message{Method: 99, Payload: make([]byte, 1<<20)}
	}
	many.Arrivals = make([]recording.Arrival, 1996)
	if r, err = whole.Made(large, many); err != nil {
		t.Fatal(err)
	}
	for tick, want := range map[uint64][2]int{8: {2, 12}, 9: {2000, 1}} {
		if a, err := r.Messages(tick); err != nil || len(a.Arrivals) != want[0] || a.More != want[1] {
			t.Errorf("tick %d: %d rows and %d more, %v", tick, len(a.Arrivals), a.More, err)
		}
	}
}

// The role read gets no field with a read rule: not in a state, a difference or a search.
func TestFieldsWithReadRulesAreWithheld(t *testing.T) {
	r := opened(t, arenaFile(t))
	d, err := r.Diff(300, 0)
	e, err2 := r.Restricted().Diff(300, 0)
	fields := func(a history.DiffAnswer) (n map[string]int) {
		n = map[string]int{}
		for _, row := range a.Changed {
			n["rows"]++
			for _, f := range row.Fields {
				n[f.Field]++
			}
		}
		return n
	}
	all, some := fields(d), fields(e)
	if err != nil || err2 != nil || all["VX"] == 0 || some["VX"] != 0 || all["X"] != some["X"] || some["X"] == 0 || some["rows"] > all["rows"] || e.More != 0 {
		t.Errorf("%v and %v, %v, %v", all, some, err, err2)
	}
	for _, row := range e.Changed {
		if len(row.Fields) == 0 {
			t.Errorf("%s has changed in no field", row.ID)
		}
	}
	if _, err := r.Restricted().Find(t.Context(), "ship.VX changed", 0, 0); err == nil || !strings.Contains(err.Error(), "ship.VX has a read rule: its values need a token with the role write") {
		t.Errorf("a search: %v", err)
	}
	if _, err := r.Restricted().Find(t.Context(), "ship.X changed", 399, 0); err != nil {
		t.Errorf("a search of a field that all may read: %v", err)
	}
}

// The pages show the kept ticks of a room, to the role read without its secrets.
func TestKeptTicksAreServed(t *testing.T) {
	var ring *history.Ring
	recordArena(t, 6, 60, 2, func(r *room.Room) { ring = history.NewRings(time.Second/2).Open(r, recording.Head{}) })
	var copies history.Copies
	page := func(path, query string) (any, error) {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range copies.Routes() {
			if r.Path == path {
				return r.Read(t.Context(), values)
			}
		}
		t.Fatal(path)
		return nil, nil
	}
	if _, err := page("/api/recording", ""); err == nil || !strings.Contains(err.Error(), "no recording is open") {
		t.Errorf("without a copy: %v", err)
	}
	for number := range uint64(history.MaxCopies + 1) {
		if taken, err := copies.Take(ring); err != nil || taken != (history.Taken{Past: number + 1, First: 31, Last: 60}) {
			t.Fatalf("%+v: %v", taken, err)
		}
	}
	a, err := page("/api/recording/state", "tick=60&class=ship&past=2")
	if body, err2 := json.Marshal(a); err != nil || err2 != nil || !strings.Contains(string(body), ",null,null,") {
		t.Errorf("%.300s, %v", body, err)
	}
	for query, want := range map[string]string{"past=1": "copy 1 of past ticks has ended, because others were taken", "past=9": `there is no copy "9"`, "past=x": `there is no copy "x"`, "past=0": "there is no copy"} {
		if _, err := page("/api/recording", query); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", query, err)
		}
	}
	ring.Close()
	if taken, err := copies.Take(ring); err != nil || taken.Last != 60 {
		t.Errorf("of an ended room: %+v, %v", taken, err)
	}
	if rows := copies.Rows(); len(rows) != history.MaxCopies || rows[0].Past != history.MaxCopies+2 || rows[0].Name != "The last 0.5 s of the default room" {
		t.Errorf("%+v", rows)
	}
}

// While an upload arrives nothing else is opened.
func TestOneRecordingIsOpenedAtATime(t *testing.T) {
	_, pages, _ := served(t)
	in, out := io.Pipe()
	ended := make(chan int)
	go func() {
		code, _ := ask(pages, "POST", "/api/recordings/upload", in)
		ended <- code
	}()
	if _, err := out.Write([]byte("n")); err != nil {
		t.Fatal(err)
	}
	if code, body := ask(pages, "POST", "/api/recordings/open?name=run.rec", nil); code != http.StatusConflict {
		t.Errorf("during an upload: %d %s", code, body)
	}
	_ = out.CloseWithError(io.ErrUnexpectedEOF) // It returns nil.
	if code := <-ended; code == http.StatusOK {
		t.Error("half an upload is opened")
	}
}

// Without a folder there are no files to open by name; a file can be opened by its path.
func TestFilesWithoutAFolder(t *testing.T) {
	_, _, dir := served(t)
	s := history.NewRecordings(history.RecordingsConfig{Temp: t.TempDir(), Replay: replayOf(newArena)})
	defer func() { _ = s.Close() }()
	if rows, more, err := s.Files(); rows == nil || len(rows) != 0 || more != 0 || err != nil {
		t.Errorf("%v and %d more, %v", rows, more, err)
	}
	if err := s.OpenFile("run.rec"); err == nil || !strings.Contains(err.Error(), "there is no folder of recordings") {
		t.Errorf("by name: %v", err)
	}
	if err := s.OpenPath(dir + "/run.rec"); err != nil {
		t.Errorf("by path: %v", err)
	}
	if err := s.OpenPath(dir + "/none"); err == nil {
		t.Error("a missing file is opened")
	}
	if err := s.Upload(bytes.NewReader(nil), "x"); err == nil || !strings.Contains(err.Error(), "it is empty") {
		t.Errorf("an empty upload: %v", err)
	}
	if _, _, err := history.NewRecordings(history.RecordingsConfig{Dir: dir + "/none"}).Files(); err == nil {
		t.Error("a missing folder has files")
	}
}
