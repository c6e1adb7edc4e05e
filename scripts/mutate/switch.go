package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strings"
)

// Compiling takes longer than most tests, so one binary holds many changes, and the environment
// selects the active one. A condition becomes a call that selects, a statement a switch:
//
//	if a < b {      if func() bool {
//	                	switch actingChange { case 7: return a <= b }
//	                	return a < b
//	                }() {
//	n++             switch actingChange { case 8: n--; default: n++ }
//
// Code without such a form, such as a constant or the declaration of a variable, is compiled by
// itself.

// chooser is the file that every changed package gets.
const chooser = `
import (
	"os"
	"strconv"
)

var actingChange, _ = strconv.Atoi(os.Getenv("` + actingChange + `"))
`

// actingChange is the environment variable with the number of the active change.
const actingChange = "NETLOOP_CHANGE"

// fork is a piece of a source with several versions.
type fork struct {
	from, to  int // bytes of the source
	statement bool
	versions  []version
}

type version struct {
	number int
	text   string
}

// forks makes the forks for the changes of one source. rest has the numbers of the changes for
// which no fork is possible.
func forks(src []byte, changes map[int]change) (all []*fork, rest []int, err error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, "", src, parser.SkipObjectResolution)
	if err != nil {
		return nil, nil, err
	}
	offset := func(p token.Pos) int { return set.Position(p).Offset }
	at := map[[2]int]*fork{}
	for _, number := range slices.Sorted(maps.Keys(changes)) {
		c := changes[number]
		n, statement := place(around(tree, offset, c))
		if n == nil {
			rest = append(rest, number)
			continue
		}
		key := [2]int{offset(n.Pos()), offset(n.End())}
		if at[key] == nil {
			at[key] = &fork{from: key[0], to: key[1], statement: statement}
			all = append(all, at[key])
		}
		text := string(src[key[0]:c.from]) + c.with + string(src[c.to:key[1]])
		at[key].versions = append(at[key].versions, version{number, text})
	}
	slices.SortFunc(all, func(a, b *fork) int {
		return cmp.Or(a.from-b.from, b.to-a.to) // The outer one first.
	})
	return all, rest, nil
}

// around returns the nodes that contain a change, the outermost first.
func around(tree ast.Node, offset func(token.Pos) int, c change) (nodes []ast.Node) {
	ast.Inspect(tree, func(n ast.Node) bool {
		if n == nil || offset(n.Pos()) > c.from || offset(n.End()) < c.to {
			return false
		}
		nodes = append(nodes, n)
		return true
	})
	return nodes
}

// place returns the innermost condition or statement of these nodes that can become a fork.
func place(nodes []ast.Node) (n ast.Node, statement bool) {
	if slices.ContainsFunc(nodes, isFixed) {
		return nil, false
	}
	for i := len(nodes) - 1; i > 0; i-- {
		switch n := nodes[i].(type) {
		case ast.Stmt:
			if standsAlone(n, nodes[i-1]) {
				return n, true
			}
			return nil, false
		case ast.Expr:
			if isCondition(n) {
				return n, false
			}
		}
	}
	return nil, false
}

// isFixed reports whether the content of a node must be a constant, or must be known to end a
// function.
func isFixed(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GenDecl:
		return n.Tok != token.VAR
	case *ast.ExprStmt:
		call, ok := n.X.(*ast.CallExpr)
		return ok && called(call) == "panic"
	}
	return false
}

// isCondition reports whether an expression is true or false, as far as the syntax shows it.
func isCondition(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		switch e.Op {
		case token.LSS, token.LEQ, token.GTR, token.GEQ, token.EQL, token.NEQ, token.LAND, token.LOR:
			return true
		}
	case *ast.UnaryExpr:
		return e.Op == token.NOT
	}
	return false
}

// standsAlone reports whether a statement may become a branch of a switch: declarations and most
// jumps may not, because there they would apply to the switch.
func standsAlone(s ast.Stmt, parent ast.Node) bool {
	switch s := s.(type) {
	case *ast.AssignStmt:
		if s.Tok == token.DEFINE {
			return false
		}
	case *ast.BranchStmt:
		if s.Tok != token.CONTINUE {
			return false
		}
	case *ast.IncDecStmt, *ast.ExprStmt, *ast.DeferStmt, *ast.ReturnStmt:
	default:
		return false
	}
	switch p := parent.(type) {
	case *ast.BlockStmt:
		return true
	case *ast.CaseClause:
		return slices.Contains(p.Body, s)
	}
	return false
}

// render writes a source with its forks. Each version is on lines of its own; owners has the number
// of the change for each line, because the compiler reports lines.
func render(src []byte, all []*fork) (text string, owners []int) {
	w := &writer{src: src}
	w.piece(0, len(src), all)
	return w.text.String(), w.owners
}

type writer struct {
	src    []byte
	text   strings.Builder
	owners []int // by finished line; 0 is the source itself
	owner  int
}

func (w *writer) add(s string) {
	w.text.WriteString(s)
	for range strings.Count(s, "\n") {
		w.owners = append(w.owners, w.owner)
	}
}

// piece writes a part of the source; all are the forks in it.
func (w *writer) piece(from, to int, all []*fork) {
	for len(all) > 0 {
		f, inner := all[0], 1
		for inner < len(all) && all[inner].from < f.to {
			inner++
		}
		w.add(string(w.src[from:f.from]))
		if f.statement {
			w.add("switch actingChange {\n")
			w.versions(f, "")
			w.add("default:\n")
			w.piece(f.from, f.to, all[1:inner])
			w.add("\n}")
		} else {
			w.add("func() bool { switch actingChange {\n")
			w.versions(f, "return ")
			w.add("}\nreturn ")
			w.piece(f.from, f.to, all[1:inner])
			w.add("}()")
		}
		from, all = f.to, all[inner:]
	}
	w.add(string(w.src[from:to]))
}

func (w *writer) versions(f *fork, before string) {
	for _, v := range f.versions {
		w.owner = v.number
		w.add(fmt.Sprintf("case %d:\n%s%s\n", v.number, before, v.text))
		w.owner = 0
	}
}
