package history

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/netvar/state"
)

type ship struct {
	Pos    struct{ X, Y float32 }
	Small  float32 `net:"quant=0.1"`
	Shield int8
	Big    uint64
	Deep   float64
	On     bool
	Name   string `net:"max=8"`
	Target codec.Ref
	Until  codec.Instant
	Items  []int32
}

func classesOf(t testing.TB) []*state.Class {
	t.Helper()
	var classes []*state.Class
	for _, name := range []string{"ship", "ship.part", "rock"} {
		c, err := state.NewClass(name, reflect.TypeFor[ship]())
		if err != nil {
			t.Fatal(err)
		}
		classes = append(classes, c)
	}
	return state.NewTable(classes...).Classes()
}

// valuesOf returns the values of a ship.
func valuesOf(c *state.Class, s *ship, owner uint64) codec.Values {
	v := codec.Values{Words: make([]uint64, c.Words()), Blobs: make([][]byte, c.Plan().Blobs())}
	c.Plan().Capture(reflect.ValueOf(s).UnsafePointer(), &v)
	v.Words[c.Words()-1] = owner
	return v
}

func TestQueriesCompareValues(t *testing.T) {
	classes := classesOf(t)
	s := ship{Small: 0.3, Shield: -3, Big: 1<<63 + 1, Deep: 0.1, On: true, Name: "ann b", Target: codec.Ref{ID: 17<<32 | 3}, Until: codec.Instant{At: 5}}
	s.Pos.X = 0.1
	for query, want := range map[string]bool{
		"ship.Shield == -3": true, "ship.Shield==-3": true, " ship . Shield == 1": false, "ship.Shield != 0": true, "ship.Shield < -2.5": true, "ship.Shield >= -3": true, "ship.Shield > -3": false,
		"ship.Big == 9223372036854775809": true, `ship.Big == "9223372036854775809"`: true, "ship.Big == 9223372036854775808": false, "ship.Big > 1e18": true, "ship.Big > -1": true,
		"ship.Pos.X == 0.1": true, "ship.Pos.X > 0.1": false, "ship.Small == 0.3": true, "ship.Deep == 0.1": true, "ship.Deep <= 0.1": true, "ship.Pos.Y < Infinity": true,
		"ship.On == true": true, "ship.On != true": false, "ship.On == 1": true,
		"ship.Name == ann b": true, `ship.Name == "ann b"`: true, `ship.Name < "b"`: true, `ship.Name == ""`: false,
		"ship.Target == 17.3": true, `ship.Target == "17.3"`: true, "ship.Target == null": false, "ship.Target != 17.4": true,
		"ship.Until == 5": true, "ship.owner == 7": true, "ship.owner != 7": false,
	} {
		q, err := parseQuery(strings.ReplaceAll(query, " . ", "."), classes)
		if err != nil {
			t.Errorf("%s: %v", query, err)
			continue
		}
		run := search{query: q}
		o := &Object{ID: 1, Class: classes[0], Values: valuesOf(classes[0], &s, 7)}
		if got := q.test(run.value(o)); got != want || q.class != classes[0] || q.id != 0 {
			t.Errorf("%s is %v of class %s", query, got, q.class.Name())
		}
	}
}

func TestQueriesNameClassObjectAndFields(t *testing.T) {
	classes := classesOf(t)
	for query, want := range map[string]string{
		"ship changed":                 "ship 0.0 0 1 2 3 4 5 6 7 8 9 10 11",
		"ship.Pos changed":             "ship 0.0 1 2",
		"ship.part.Pos.Y changed":      "ship.part 0.0 2",
		"ship.part[4.5].Pos.Y changed": "ship.part 4.5 2",
		"rock[17.3].Items changed":     "rock 17.3 11",
		"rock[17.3] changed":           "rock 17.3 0 1 2 3 4 5 6 7 8 9 10 11",
		"rock.owner changed":           "rock 0.0 0",
	} {
		q, err := parseQuery(query, classes)
		if err != nil {
			t.Errorf("%s: %v", query, err)
			continue
		}
		got := fmt.Sprint(q.class.Name(), " ", q.id, " ", strings.Trim(fmt.Sprint(q.fields), "[]"))
		if got != want || q.op != changed {
			t.Errorf("%s: %s %s, want %s", query, got, q.op, want)
		}
	}
}

// Each mistake gets a plain line with a remedy.
func TestQueriesNameTheirMistake(t *testing.T) {
	classes := classesOf(t)
	for query, want := range map[string]string{
		"":                           "the query has no operator: write a class, a field and a comparison, such as ship[17.3].Shield == 0",
		"ship.Shield":                "the query has no operator",
		"ship.Shield = 3":            `"= " is no operator: use ==, !=`,
		"ship.Shield ==":             "there is no value after ==",
		"shp.Shield == 0":            `there is no class "shp": did you mean ship?`,
		"asteroid.X == 0":            `there is no class "asteroid": there are ship, ship.part, rock`,
		"ship.Shiedl == 0":           `class ship has no field "Shiedl": did you mean Shield?`,
		"ship.Z == 0":                `class ship has no field "Z": there are Pos.X, Pos.Y`,
		"ship[17].Shield == 0":       `"17" is no object: write its slot and generation, such as ship[17.3]`,
		"ship[17.3 Shield == 0":      "is no object",
		"ship[0.0].Shield == 0":      "is no object",
		"ship[17.3]Shield == 0":      `"Shield" follows the class: write a dot and a field`,
		"ship. == 0":                 "follows the class",
		"ship == 0":                  "ship has several fields, such as (owner): compare one of them",
		"ship.Pos == 0":              "ship.Pos has several fields, such as Pos.X: compare one of them, or ask for ship.Pos changed",
		"ship.Shield == full":        `ship.Shield: "full" is no number`,
		"ship.Pos.X == NaN":          `ship.Pos.X: "NaN" is no number`,
		"ship.On == 3":               `ship.On: "3" is neither true nor false`,
		"ship.On < true":             "ship.On: values of its type have no order: use == or !=",
		"ship.Target > 17.3":         "ship.Target: values of its type have no order",
		"ship.Target == 17":          `ship.Target: "17" is no object`,
		"ship.Items == 3":            "ship.Items: its values have several parts and cannot be compared: ask for changed",
		`ship.Name == "a`:            "is no string in quotes",
		strings.Repeat("ship", 1000): "the query has more than 512 bytes",
	} {
		_, err := parseQuery(query, classes)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.40q: %v, want %s", query, err, want)
		}
	}
}

// Any query is an error, or a test that any values can be given to.
func FuzzQuery(f *testing.F) {
	classes := classesOf(f)
	for _, q := range []string{
		"ship.Shield == 0", "ship[17.3].Pos.X >= 1e9", `rock.Name != "a\x00"`, "ship.part.On == true", "ship changed", "ship.Pos changed",
		"ship.Target == null", "ship.Target == 3.4", "ship.Big < 18446744073709551615", "ship.Deep > -Infinity", "ship.owner == 1", "ship.Shiedl = ",
	} {
		f.Add(q)
	}
	s := ship{Name: "x"}
	f.Fuzz(func(t *testing.T, text string) {
		q, err := parseQuery(text, classes)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%q: several lines: %v", text, err)
			}
			return
		}
		run := search{query: q, met: make([]state.ID, 2), answer: new(FindAnswer)}
		for _, values := range []*ship{{}, &s} {
			o := &Object{ID: state.MakeID(1, 1), Class: q.class, Values: valuesOf(q.class, values, 3)}
			run.note(o, nil, false)
			run.note(o, []byte{0xff, 0xff}, true)
		}
	})
}
