package simulation

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
)

// neverDrawn are the options that no story draws, with the reason.
var neverDrawn = map[string]string{
	"Config.Listen": ports, "Config.Offline": ports, "Config.Admin": ports, "Config.AdminTokenFile": ports, "Config.Web": ports, "Config.WebTLS": ports,
	"Config.WebURL": ports, "Config.WebProxies": ports, "Config.WebFiles": ports, "Config.Origins": ports, "Config.CertFile": ports, "Config.KeyFile": ports,
	"Config.TLS": ports, "Config.Secret": ports, "Config.PlainSocket": ports, "Config.QUICDatagrams": ports, "Config.TraceDir": ports,
	"Config.AdmitTimeout": wall, "Config.Watchdog": wall, "Config.WatchdogExit": wall,
	"Config.Seed": world_, "Config.Log": world_, "Config.CheckValues": world_,
	"Config.Record": play_, "Config.RecordRoom": play_, "Config.RecordNotes": "it affects no tick",
	"Config.InspectRing": ports, "Config.RecordingDirs": ports,
	"Config.Cluster": cluster_, "RoomSpec.Place": cluster_,
	"Config.Registerer": play_, "Config.LogsDropped": "it affects no tick",
	"RPCLimits.Answers": attack, "RPCLimits.Dry": attack,
	"RoomSpec.Name": play_, "client.Config.Schema": play_, "client.Config.Ticket": play_, "client.Config.Join": play_, "client.Config.Token": play_,
	"client.Config.Tokens": play_, "client.Config.Log": world_, "client.Config.Local": ports, "client.Config.TLS": ports, "client.Config.Transport": ports,
	"client.Config.QUICDatagrams": ports,
}

const (
	ports  = "it is of real ports, files or carriers"
	wall   = "it is of real time, which a story does not have"
	world_ = "netlooptest sets it"
	play_  = "the play sets it, as events say"
	attack = "bots of stories keep to it"

	cluster_ = "a story has one server"
)

// fields records the fields of a struct that are not zero.
func fields(name string, v any, drawn map[string]bool) {
	s := reflect.ValueOf(v)
	for i := range s.NumField() {
		f := s.Type().Field(i)
		if !f.IsExported() {
			continue
		}
		key := name + "." + f.Name
		drawn[key] = drawn[key] || !s.Field(i).IsZero()
		switch v := s.Field(i).Interface().(type) {
		case netloop.RPCLimits:
			fields("RPCLimits", v, drawn)
		case netloop.RoomSpec:
			fields("RoomSpec", v, drawn)
		case client.Reconnect:
			fields("Reconnect", v, drawn)
		}
	}
}

// A new option of a server, a room or a client is drawn, or has a reason not to be.
func TestStoriesDrawEveryOption(t *testing.T) {
	drawn := map[string]bool{}
	for seed := range uint64(500) {
		s := draw(seed)
		var c netloop.Config
		s.Server.configure(&c)
		fields("Config", c, drawn)
		for _, e := range s.Events {
			if e.Spec != nil {
				fields("RoomSpec", *e.Spec, drawn)
			}
			if e.Join != nil {
				fields("client.Config", e.Join.config(e.Room), drawn)
			}
		}
	}
	for key, is := range drawn {
		if reason := neverDrawn[key]; !is && reason == "" {
			t.Errorf("no story draws %s: draw it, or add a reason to neverDrawn", key)
		}
	}
	for key := range neverDrawn {
		if _, exists := drawn[key]; !exists {
			t.Errorf("neverDrawn has %s, which does not exist", key)
		}
	}
}

// A new tag of fields is on a field of the stories' classes.
func TestStoriesHaveEveryTag(t *testing.T) {
	doc, err := os.ReadFile("../../class.go")
	if err != nil {
		t.Fatal(err)
	}
	used := ""
	for _, class := range []any{pawn{}, vault{}, tome{}, boiler{}, chest{}, ship{}} {
		for i := range reflect.TypeOf(class).NumField() {
			used += "," + reflect.TypeOf(class).Field(i).Tag.Get("net")
		}
	}
	tags := regexp.MustCompile(`(?m)^//\t([a-z]+) {2,}`).FindAllStringSubmatch(string(doc), -1)
	if len(tags) < 13 {
		t.Errorf("class.go lists %d tags", len(tags))
	}
	var names []string
	for _, m := range regexp.MustCompile(`[,]([a-z]+)`).FindAllStringSubmatch(used, -1) {
		names = append(names, m[1])
	}
	for _, tag := range tags {
		if !slices.Contains(names, tag[1]) {
			t.Errorf("no class of the stories has the tag %s", tag[1])
		}
	}
}
