package apidoc

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/netloop/netloop/internal/testing/golden"
)

// packages are the folders with types of answers.
var packages = []string{"", "internal/admin", "internal/apidoc", "internal/directory", "internal/inspect", "internal/inspect/history", "internal/loop", "internal/metrics", "internal/metrics/ticks", "internal/overload", "internal/room", "internal/schema", "internal/slowtick", "internal/tracedump", "internal/web"}

// comments.txt has the comments of the sources.
func TestTheCommentsAreThoseOfTheSources(t *testing.T) {
	var lines []string
	for _, dir := range packages {
		lines = append(lines, commentsOf(t, dir)...)
	}
	slices.Sort(lines)
	golden.Check(t, "comments.txt", strings.Join(lines, ""))
}

// commentsOf returns a line for each field with a JSON name in a folder.
func commentsOf(t *testing.T, dir string) (lines []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%q has no Go files: %v", dir, err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			decl, ok := n.(*ast.GenDecl)
			if !ok || decl.Tok != token.TYPE {
				return true
			}
			for _, spec := range decl.Specs {
				s := spec.(*ast.TypeSpec)
				if body, ok := s.Type.(*ast.StructType); ok {
					lines = append(lines, structLines(dir+"."+s.Name.Name+".", body, decl.Doc.Text()+" "+s.Doc.Text())...)
				}
			}
			return true
		})
	}
	return lines
}

// structLines returns a line for each field of a struct with a JSON name: with the comment at its
// end, or else the sentences about it in the other comments of the struct.
func structLines(prefix string, body *ast.StructType, about string) (lines []string) {
	var names []string
	for _, f := range body.Fields.List {
		about += " " + f.Doc.Text()
		for _, n := range f.Names {
			names = append(names, n.Name)
		}
	}
	for _, f := range body.Fields.List {
		if f.Tag == nil || len(f.Names) == 0 || reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("json") == "" {
			continue
		}
		name := f.Names[0].Name
		text := []string{strings.Join(strings.Fields(f.Comment.Text()), " ")}
		if text[0] == "" {
			text = docOf(name, f.Doc.Text(), about, names)
		}
		lines = append(lines, prefix+name+"\t"+strings.Join(text, ". ")+"\n")
	}
	return lines
}

// docOf returns the sentences about a field, or its own comment if that names no field.
func docOf(name, own, about string, names []string) (text []string) {
	for _, s := range sentences(about) {
		if slices.Contains(subjectsOf(s, names), name) {
			text = append(text, short(s, name))
		}
	}
	if all := sentences(own); len(text) == 0 && len(all) > 0 && len(subjectsOf(all[0], names)) == 0 {
		return all
	}
	return text
}

var ends = regexp.MustCompile(`\.\s+|\.$`)

// sentences splits a comment, and removes the full stops.
func sentences(text string) (all []string) {
	text = strings.Join(strings.Fields(text), " ")
	for _, s := range ends.Split(text, -1) {
		if s != "" {
			all = append(all, s)
		}
	}
	return all
}

var subject = regexp.MustCompile(`^((?:[A-Z]\w*(?:, | and )?)+) (?:is|are|has|have|reports?|lists?|counts?|describes?|holds?|names?)\b`)

// subjectsOf returns the fields that a sentence is about: "From and To are …".
func subjectsOf(sentence string, names []string) (all []string) {
	m := subject.FindStringSubmatch(sentence)
	if m == nil {
		return nil
	}
	for _, word := range strings.FieldsFunc(m[1], func(r rune) bool { return r == ' ' || r == ',' }) {
		if slices.Contains(names, word) {
			all = append(all, word)
		}
	}
	return all
}

// short leaves out the beginning "Name is" of a sentence about one field.
func short(sentence, name string) string {
	for _, verb := range []string{" is ", " are "} {
		if rest, ok := strings.CutPrefix(sentence, name+verb); ok {
			return rest
		}
	}
	return sentence
}

// Fields of nested and embedded structs, lists, maps and pointers are listed by their paths, and a
// type within itself once.
func TestFieldsAreListed(t *testing.T) {
	type Part struct {
		Text  string `json:"text"`
		Parts []Part `json:"parts"`
	}
	type answer struct {
		Part
		Of     map[string][]Part `json:"of"`
		Maybe  *int              `json:"maybe"`
		Mode   fs.FileMode       `json:"mode,omitempty"`
		Pair   [2]bool           `json:"pair"`
		hidden os.File
		Not    int `json:"-"`
	}
	_ = answer{}.hidden
	var got []string
	for _, f := range Fields([]answer{}) {
		got = append(got, f.Name+" "+f.Type)
	}
	want := []string{"text string", "parts object[]", "of object[]{}", "of{}[].text string", "of{}[].parts object[]", "maybe number or null", "mode number", "pair boolean[2]"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if len(Fields(nil)) != 0 {
		t.Error("nothing has fields")
	}
}

// The texts of the fields are the comments of this package's own sources.
func TestFieldsHaveTheirComments(t *testing.T) {
	for _, f := range Fields(map[string]Field{}) {
		if !strings.HasPrefix(f.Name, "{}.") || f.Text == "" {
			t.Errorf("%+v", f)
		}
	}
}
