package apidoc

import (
	_ "embed"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
)

// Field is a field of an answer.
type Field struct {
	// Name is the path of the field: clients[].rtt_ns is a field of each element of clients.
	Name string `json:"name"`
	// Type is the JSON type, with the element's type before [] for a list.
	Type string `json:"type"`
	// Text is the comment of the field.
	Text string `json:"text"`
}

// Fields lists the fields of a value's type in the order of the JSON. A type that contains itself
// is listed once.
func Fields(v any) []Field {
	t := reflect.TypeOf(v)
	for t != nil && (t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer) {
		t = t.Elem()
	}
	if t == nil {
		return nil
	}
	if t.Kind() == reflect.Map {
		return new(lister).value(nil, "{}", t.Elem())
	}
	return new(lister).fields(nil, "", t)
}

// lister lists the fields of one answer.
type lister struct{ within []reflect.Type }

// fields appends the fields of a struct. prefix is the path before their names.
func (l *lister) fields(dst []Field, prefix string, t reflect.Type) []Field {
	if t.Kind() != reflect.Struct || t == reflect.TypeFor[time.Time]() || marshals(t) || slices.Contains(l.within, t) {
		return dst
	}
	l.within = append(l.within, t)
	defer func() { l.within = l.within[:len(l.within)-1] }()
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			dst = l.fields(dst, prefix, f.Type)
		case f.IsExported() && name != "" && name != "-":
			dst = append(dst, Field{prefix + name, typeName(f.Type), comments()[keyOf(t, f.Name)]})
			dst = l.value(dst, prefix+name, f.Type)
		}
	}
	return dst
}

// value appends the fields within a value at a path.
func (l *lister) value(dst []Field, path string, t reflect.Type) []Field {
	switch {
	case marshals(t):
		return dst
	case t.Kind() == reflect.Pointer:
		return l.value(dst, path, t.Elem())
	case t.Kind() == reflect.Slice || t.Kind() == reflect.Array:
		return l.value(dst, path+"[]", t.Elem())
	case t.Kind() == reflect.Map:
		return l.value(dst, path+"{}", t.Elem())
	}
	return l.fields(dst, path+".", t)
}

// marshals reports whether a type has a JSON form of its own.
func marshals(t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[json.Marshaler]()) || t.Implements(reflect.TypeFor[encoding.TextMarshaler]())
}

// typeName returns the JSON type of a Go type.
func typeName(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return "time"
	case t == reflect.TypeFor[json.RawMessage]():
		return "any"
	case t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return "string"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "boolean"
	case reflect.String:
		return "string"
	case reflect.Pointer:
		return typeName(t.Elem()) + " or null"
	case reflect.Slice:
		return typeName(t.Elem()) + "[]"
	case reflect.Array:
		return fmt.Sprintf("%s[%d]", typeName(t.Elem()), t.Len())
	case reflect.Map:
		return typeName(t.Elem()) + "{}"
	case reflect.Struct, reflect.Interface:
		return "object"
	}
	return "number"
}

// keyOf returns the key of a field in comments.txt.
func keyOf(t reflect.Type, field string) string {
	const module = "github.com/netloop/netloop"
	return strings.TrimPrefix(strings.TrimPrefix(t.PkgPath(), module), "/") + "." + t.Name() + "." + field
}

// commentFile has a line for each field: its key, a tab and its comment. It is written by
// "go test ./internal/apidoc -rewrite".
//
//go:embed comments.txt
var commentFile string

// comments returns the comments by the keys of fields.
var comments = sync.OnceValue(func() map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(commentFile) {
		key, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		all[key] = text
	}
	return all
})
