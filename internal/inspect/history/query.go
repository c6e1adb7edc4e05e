package history

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/spelling"
)

// A query names ticks by a field:
//
//	query    = class [ "[" id "]" ] [ "." field ] ( operator value | "changed" )
//	id       = slot "." generation, such as 17.3; without it any object of the class
//	field    = a leaf such as Pos.X, or "owner"; with "changed" also a struct or array of
//	           leaves, or none for all of them
//	operator = "==" | "!=" | "<" | "<=" | ">" | ">="
//	value    = a number, true, false, null, a string with or without quotes, or an id
//
// A comparison finds the ticks in which it becomes true: for an object that is spawned with such a
// value, the tick of the spawn. "changed" finds the ticks in which the field gets another value.

// maxQuery bounds a query, in bytes.
const maxQuery = 512

// query is a parsed query.
type query struct {
	class  *state.Class
	id     state.ID // 0: any object
	fields []int    // as in state.Class.FieldName; one, unless the operator is changed
	op     string   // "changed" or a comparison
	test   func(value any) bool
}

const changed = "changed"

// operators are the comparisons; a longer one is before its prefix.
var operators = []string{"==", "!=", "<=", ">=", "<", ">"}

// parseQuery parses a query about the classes of a schema.
func parseQuery(text string, classes []*state.Class) (q query, err error) {
	if len(text) > maxQuery {
		return q, fmt.Errorf("the query has more than %d bytes", maxQuery)
	}
	path, op, value, err := splitQuery(text)
	if err != nil {
		return q, err
	}
	q.op = op
	field, err := q.object(path, classes)
	if err != nil {
		return q, err
	}
	if err := q.field(field); err != nil {
		return q, err
	}
	if op == changed {
		return q, nil
	}
	if len(q.fields) > 1 {
		return q, fmt.Errorf("%s has several fields, such as %s: compare one of them, or ask for %s.%s changed",
			strings.TrimSpace(path), q.class.FieldName(q.fields[0]), q.class.Name(), field)
	}
	return q, q.compare(value)
}

const example = "such as ship[17.3].Shield == 0, or ship.Shield changed"

// splitQuery splits a query at its operator.
func splitQuery(text string) (path, op, value string, err error) {
	at := strings.IndexAny(text, "=!<>")
	if at < 0 {
		if path, ok := strings.CutSuffix(strings.TrimSpace(text), " "+changed); ok {
			return strings.TrimSpace(path), changed, "", nil
		}
		return "", "", "", errors.New("the query has no operator: write a class, a field and a comparison, " + example)
	}
	i := slices.IndexFunc(operators, func(op string) bool { return strings.HasPrefix(text[at:], op) })
	if i < 0 {
		return "", "", "", fmt.Errorf("%.2q is no operator: use ==, !=, <, <=, >, >= or changed", text[at:])
	}
	op = operators[i]
	value = strings.TrimSpace(text[at+len(op):])
	if value == "" {
		return "", "", "", fmt.Errorf("there is no value after %s: write a query %s", op, example)
	}
	return strings.TrimSpace(text[:at]), op, value, nil
}

// object parses the class and the id of a path, and returns the rest, the field.
func (q *query) object(path string, classes []*state.Class) (field string, err error) {
	rest := ""
	for _, c := range classes { // The longest name wins: a name may have dots.
		after, ok := strings.CutPrefix(path, c.Name())
		if ok && (after == "" || after[0] == '.' || after[0] == '[') && (q.class == nil || len(c.Name()) > len(q.class.Name())) {
			q.class, rest = c, after
		}
	}
	if q.class == nil {
		return "", unknownClass(path, classes)
	}
	if after, ok := strings.CutPrefix(rest, "["); ok {
		id, tail, closed := strings.Cut(after, "]")
		if q.id, ok = state.ParseID(strings.TrimSpace(id)); !ok || !closed || q.id == 0 {
			return "", fmt.Errorf("%.40q is no object: write its slot and generation, such as %s[17.3]", id, q.class.Name())
		}
		rest = tail
	}
	if rest == "" {
		return "", nil
	}
	if field, ok := strings.CutPrefix(rest, "."); ok && field != "" {
		return field, nil
	}
	return "", fmt.Errorf("%.40q follows the class: write a dot and a field, %s", rest, example)
}

func unknownClass(path string, classes []*state.Class) error {
	wrote, names := path, make([]string, len(classes))
	if i := strings.IndexAny(path, ".["); i >= 0 {
		wrote = path[:i]
	}
	for i, c := range classes {
		names[i] = c.Name()
	}
	return fmt.Errorf("there is no class %.64q%s", wrote, meant(wrote, names))
}

// maxNamed bounds the names in the error for an unknown one.
const maxNamed = 20

// meant returns the name that is nearest to an unknown one, or all names if none is near.
func meant(wrote string, names []string) string {
	if near := spelling.Nearest(wrote, names); near != "" {
		return fmt.Sprintf(": did you mean %s?", near)
	}
	more := ""
	if len(names) > maxNamed {
		more, names = fmt.Sprintf(" and %d more", len(names)-maxNamed), names[:maxNamed]
	}
	return ": there are " + strings.Join(names, ", ") + more
}

// field finds the fields with a name.
func (q *query) field(name string) error {
	if q.fields = q.class.FieldsNamed(name); len(q.fields) > 0 {
		return nil
	}
	if name == "owner" {
		q.fields = []int{0}
		return nil
	}
	return fmt.Errorf("class %s has no field %.64q%s", q.class.Name(), name, meant(name, append(q.class.LeafNames(), "owner")))
}

// compare sets the test of a query that compares a field with a value. text is the value.
func (q *query) compare(text string) error {
	field := q.fields[0]
	zero := any(uint64(0)) // field 0 is the owner
	if field > 0 {
		zero = q.class.Plan().Scalar(field-1, &q.class.Zero)
	}
	order, err := ordering(zero, text)
	if err != nil {
		return fmt.Errorf("%s.%s: %w", q.class.Name(), q.class.FieldName(field), err)
	}
	switch zero.(type) {
	case bool, codec.Ref:
		if q.op != "==" && q.op != "!=" {
			return fmt.Errorf("%s.%s: values of its type have no order: use == or !=", q.class.Name(), q.class.FieldName(field))
		}
	}
	holds := map[string]func(int) bool{
		"==": func(c int) bool { return c == 0 }, "!=": func(c int) bool { return c != 0 },
		"<": func(c int) bool { return c < 0 }, "<=": func(c int) bool { return c <= 0 },
		">": func(c int) bool { return c > 0 }, ">=": func(c int) bool { return c >= 0 },
	}[q.op]
	q.test = func(value any) bool { return holds(order(value)) }
	return nil
}

// ordering parses a text as a value of the type of like. It returns a function that compares
// another value of that type with the parsed one.
func ordering(like any, text string) (func(any) int, error) {
	switch like.(type) {
	case bool:
		want, err := strconv.ParseBool(text)
		if err != nil {
			return nil, fmt.Errorf("%.40q is neither true nor false", text)
		}
		return func(v any) int {
			if v.(bool) == want {
				return 0
			}
			return 1
		}, nil
	case string:
		want := text
		if text[0] == '"' {
			var err error
			if want, err = strconv.Unquote(text); err != nil {
				return nil, fmt.Errorf("%.40q is no string in quotes", text)
			}
		}
		return func(v any) int { return strings.Compare(v.(string), want) }, nil
	case codec.Ref:
		want, ok := state.ParseID(strings.Trim(text, `"`))
		if !ok && text != "null" && text != "0" {
			return nil, fmt.Errorf("%.40q is no object: write its slot and generation, such as 17.3, or null", text)
		}
		if !ok {
			want = 0
		}
		return func(v any) int { return cmp.Compare(v.(codec.Ref).ID, uint64(want)) }, nil
	case nil:
		return nil, fmt.Errorf("its values have several parts and cannot be compared: ask for %s", changed)
	}
	return numberOrdering(text)
}

// numberOrdering compares integers exactly, and a float32 in its own precision: 0.1 means the
// nearest float32.
func numberOrdering(text string) (func(any) int, error) {
	text = strings.Trim(text, `"`) // JSON shows large integers and infinities in quotes.
	signed, errSigned := strconv.ParseInt(text, 10, 64)
	unsigned, errUnsigned := strconv.ParseUint(text, 10, 64)
	float, err := strconv.ParseFloat(text, 64)
	if err != nil || float != float {
		return nil, fmt.Errorf("%.40q is no number", text)
	}
	return func(v any) int {
		switch v := v.(type) {
		case int64:
			if errSigned == nil {
				return cmp.Compare(v, signed)
			}
			return cmp.Compare(float64(v), float)
		case uint64:
			if errUnsigned == nil {
				return cmp.Compare(v, unsigned)
			}
			return cmp.Compare(float64(v), float)
		case float32:
			return cmp.Compare(v, float32(float))
		default:
			return cmp.Compare(v.(float64), float)
		}
	}, nil
}
