package schema

import (
	"fmt"
	"io"
	"strings"

	"github.com/netloop/netloop/internal/netvar/state"
)

// TypeScriptStep writes the beginning of a page's step function for a predicted class, which the
// author completes; with test it writes the test of that function. from is the module of the
// client.
func (s *Schema) TypeScriptStep(w io.Writer, from, class string, test bool) error {
	k, err := s.steppable(class)
	if err != nil {
		return err
	}
	t := typeScript{schema: s, names: map[string]string{}, protos: map[string]string{}}
	t.declarations() // Names are those of the schema's module.
	state := t.className(k)
	variable := strings.ToLower(state[:1]) + state[1:]
	names := strings.NewReplacer(
		"{class}", class, "{State}", state, "{state}", variable, "{Input}", t.messageName(&s.input.codec), "{from}", from,
		"{testing}", siblingModule(from, "testing"), "{file}", strings.ToLower(identifier(class)), "{step}", "step"+identifier(class),
		"{hints}", hints(variable, k),
	)
	text := stepText
	if test {
		text = stepTestText
	}
	_, err = names.WriteString(w, text)
	return err
}

// steppable returns the class of a name if a page can predict it.
func (s *Schema) steppable(name string) (*state.Class, error) {
	var predicted []string
	for _, k := range s.predicted {
		if predicted = append(predicted, k.Name()); k.Name() == name {
			if s.input == nil {
				return nil, fmt.Errorf("schema %q has no input: declare it with netloop.NewInput", s.Name)
			}
			return k, nil
		}
	}
	if predicted == nil {
		return nil, fmt.Errorf("schema %q has no predicted class: declare one with netloop.Predicted()", s.Name)
	}
	return nil, fmt.Errorf("schema %q has no predicted class %q: there are %s", s.Name, name, strings.Join(predicted, ", "))
}

// hints returns how to compute each field as Go does, in the lines of a comment.
func hints(variable string, k *state.Class) string {
	ways := []struct{ kinds, hint string }{
		{"float32 quat", "float32 in Go: f(…) around each operation, s.%s = f(s.%[1]s + f(…))"},
		{"int8 int16 int32 uint8 uint16 uint32", "an integer, which wraps as in Go: s.%s += 1"},
		{"int64 uint64", "a bigint, which wraps as in Go: s.%s += 1n"},
		{"instant", "a deadline: s.%s = frame.in(ms), and frame.left(s.%[1]s) > 0 until it has passed"},
	}
	var b strings.Builder
	for _, way := range ways {
		var fields []string
		layout := k.Layout()
		for i := range layout.Fields {
			f := &layout.Fields[i]
			kind, _, _ := strings.Cut(f.Type.String(), " ")
			if strings.Contains(" "+way.kinds+" ", " "+kind+" ") {
				fields = append(fields, f.Name)
			}
		}
		if len(fields) > 0 {
			hint := strings.ReplaceAll(fmt.Sprintf(way.hint, fields[0]), "s.", variable+".")
			fmt.Fprintf(&b, "  // %s: %s\n", strings.Join(fields, ", "), hint)
		}
	}
	return b.String()
}

const stepText = `// The step of the class "{class}" in the page: the server runs its own in Go, and this page runs this
// one, a little earlier. Written once by "schema --ts --step {class}": complete it.

import type { Frame } from "{from}";

import type { {Input}, {State} } from "./schema.js";

const f = Math.fround;

/** Changes the state by a fixed step of frame.fixedDeltaMs, and nothing else. */
export function {step}({state}: {State}, input: {Input}, frame: Frame): void {
{hints}}
`

const stepTestText = `// The page's step of the class "{class}" computes the same as the server's. A Go test writes the cases:
//
//	netlooptest.Vectors(t, "web/testdata/{file}.json", 500, CLASS, INPUT, STEP, func(r *rand.Rand, i int, s *{State}) {Input} { … })

import { readFileSync } from "node:fs";
import { test } from "node:test";

import { runVectors } from "{testing}";

import { schema } from "./schema.js";
import { {step} } from "./{file}.js";

const vectors = JSON.parse(readFileSync(new URL("testdata/{file}.json", import.meta.url), "utf8"));

test("{class} steps in the page as on the server", () => runVectors(schema, "{class}", vectors, {step}));
`
