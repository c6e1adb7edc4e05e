package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"hash/fnv"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// change is one change of one line.
type change struct {
	dir, file  string // relative to the module
	line       int
	from, to   int    // replaced bytes of the file
	with       string // their replacement
	was, is    string // the line before and after, without indentation
	occurrence int    // among equal changes of the file
}

// String describes a change by its file and line of text, because line numbers move.
func (c change) String() string {
	s := c.file + " | " + c.was + " | " + c.is
	if c.occurrence > 0 {
		s += " | " + strconv.Itoa(c.occurrence+1)
	}
	return s
}

// apply returns the source with the change.
func (c change) apply(src []byte) []byte {
	return slices.Concat(src[:c.from], []byte(c.with), src[c.to:])
}

// folders returns the folders that match the patterns. A pattern that ends in "/..." matches all
// folders below it that have sources, except packages for tests and those that unchanged lists.
func folders(patterns []string) (all []string, err error) {
	for _, pattern := range patterns {
		root, below := strings.CutSuffix(pattern, "/...")
		if !below {
			all = append(all, pattern)
			continue
		}
		err = filepath.WalkDir(root, func(name string, _ fs.DirEntry, err error) error {
			if dir := path.Dir(filepath.ToSlash(name)); path.Ext(name) == ".go" && !strings.HasSuffix(dir, "test") && !slices.Contains(unchanged, dir) && !slices.Contains(all, dir) {
				all = append(all, dir)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// find lists the changes of all sources of these folders.
func find(dirs []string) (all []change, err error) {
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			base := path.Base(file)
			if strings.HasSuffix(base, "_test.go") || strings.HasSuffix(base, ".pb.go") {
				continue
			}
			if built, err := build.Default.MatchFile(dir, base); err != nil || !built {
				continue // It is for another system, which this system's tests do not cover.
			}
			src, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			found, err := findIn(filepath.ToSlash(file), src)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
	}
	return all, nil
}

// findIn lists the changes of one source in the order of their positions.
func findIn(file string, src []byte) ([]change, error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	f := &finder{file: file, src: src, set: set, seen: map[string]int{}, unread: map[ast.Node]bool{}}
	ast.Inspect(tree, f.visit)
	return f.found, nil
}

type finder struct {
	file  string
	src   []byte
	set   *token.FileSet
	found []change
	seen  map[string]int

	unread map[ast.Node]bool // constants that a return has beside an error: no caller reads them
}

// swaps are operators that are mistaken for one another.
var swaps = map[token.Token]string{
	token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">", token.EQL: "!=", token.NEQ: "==",
	token.LAND: "||", token.LOR: "&&", token.ADD: "-", token.SUB: "+", token.MUL: "+",
	token.SHL: ">>", token.SHR: "<<", token.AND: "|", token.OR: "&", token.AND_NOT: "&",
	token.ADD_ASSIGN: "-=", token.SUB_ASSIGN: "+=", token.OR_ASSIGN: "&=", token.AND_ASSIGN: "|=",
	token.AND_NOT_ASSIGN: "&=", token.INC: "--", token.DEC: "++",
}

// words are names that are mistaken for one another.
var words = map[string]string{"min": "max", "max": "min", "true": "false", "false": "true"}

// silent has the functions whose calls are not changed inside: their arguments are texts for
// people, which tests need not repeat.
var silent = map[string]bool{
	"panic": true, "Errorf": true, "New": true, "Sprintf": true, "Debug": true, "Info": true, "Warn": true, "Error": true,
}

// visit adds the changes of one node.
func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ImportSpec, *ast.StructType, *ast.ArrayType:
		return false
	case *ast.CallExpr:
		return !silent[called(n)]
	case *ast.BinaryExpr:
		f.swap(n.OpPos, n.Op)
	case *ast.AssignStmt:
		f.swap(n.TokPos, n.Tok)
		if n.Tok == token.ASSIGN {
			f.remove(n)
		}
	case *ast.IncDecStmt:
		f.swap(n.TokPos, n.Tok)
	case *ast.ExprStmt:
		if call, ok := n.X.(*ast.CallExpr); ok && called(call) == "Helper" {
			return false // It only sets the line that a failure names.
		}
		f.remove(n)
	case *ast.DeferStmt, *ast.BranchStmt:
		f.remove(n)
	case *ast.ReturnStmt:
		if len(n.Results) == 0 {
			f.remove(n)
		} else if call, ok := n.Results[len(n.Results)-1].(*ast.CallExpr); ok && (called(call) == "Errorf" || called(call) == "New") {
			f.skipBeside(n)
		}
	case *ast.IfStmt:
		f.skipBesideChecked(n)
		text := string(f.src[f.offset(n.Cond.Pos()):f.offset(n.Cond.End())])
		f.replace(n.Cond.Pos(), n.Cond.End(), "false && ("+text+")")
		f.replace(n.Cond.Pos(), n.Cond.End(), "true || ("+text+")")
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			f.replace(n.Pos(), n.Pos()+1, "")
		}
	case *ast.Ident:
		if with, ok := words[n.Name]; ok && !f.unread[n] {
			f.replace(n.Pos(), n.End(), with)
		}
	case *ast.BasicLit:
		if v, err := strconv.ParseInt(n.Value, 0, 64); n.Kind == token.INT && err == nil && !f.unread[n] {
			f.replace(n.Pos(), n.End(), strconv.FormatInt(v+1, 10))
		}
	}
	return true
}

// skipBesideChecked skips the constants beside an error that an if statement has checked:
//
//	if err != nil {
//		return 0, err
func (f *finder) skipBesideChecked(n *ast.IfStmt) {
	cond, ok := n.Cond.(*ast.BinaryExpr)
	if !ok || cond.Op != token.NEQ {
		return
	}
	checked, ok := cond.X.(*ast.Ident)
	if right, isName := cond.Y.(*ast.Ident); !ok || !isName || right.Name != "nil" {
		return
	}
	for _, s := range n.Body.List {
		if r, ok := s.(*ast.ReturnStmt); ok && len(r.Results) > 0 {
			if last, ok := r.Results[len(r.Results)-1].(*ast.Ident); ok && last.Name == checked.Name {
				f.skipBeside(r)
			}
		}
	}
}

// skipBeside skips the constants among the results of a return, except the last one.
func (f *finder) skipBeside(n *ast.ReturnStmt) {
	for _, e := range n.Results[:len(n.Results)-1] {
		if u, ok := e.(*ast.UnaryExpr); ok {
			e = u.X
		}
		f.unread[e] = true
	}
}

// called returns the last name of the called function.
func called(n *ast.CallExpr) string {
	switch fn := n.Fun.(type) {
	case *ast.Ident:
		return fn.Name
	case *ast.SelectorExpr:
		return fn.Sel.Name
	}
	return ""
}

func (f *finder) offset(p token.Pos) int { return f.set.Position(p).Offset }

// swap replaces an operator by the one that it is mistaken for.
func (f *finder) swap(at token.Pos, op token.Token) {
	if with, ok := swaps[op]; ok {
		f.replace(at, at+token.Pos(len(op.String())), with)
	}
}

// remove deletes a statement that is on one line.
func (f *finder) remove(n ast.Node) {
	if f.set.Position(n.Pos()).Line == f.set.Position(n.End()).Line {
		f.replace(n.Pos(), n.End(), "")
	}
}

// replace adds a change of the bytes between two positions.
func (f *finder) replace(from, to token.Pos, with string) {
	c := change{
		dir: path.Dir(f.file), file: f.file, line: f.set.Position(from).Line,
		from: f.offset(from), to: f.offset(to), with: with,
	}
	begin := strings.LastIndexByte(string(f.src[:c.from]), '\n') + 1
	end := c.to + strings.IndexByte(string(f.src[c.to:])+"\n", '\n')
	c.was = strings.TrimSpace(string(f.src[begin:end]))
	c.is = strings.TrimSpace(string(f.src[begin:c.from]) + with + string(f.src[c.to:end]))
	key := c.String()
	c.occurrence = f.seen[key]
	f.seen[key]++
	f.found = append(f.found, c)
}

// order sorts changes by a hash of their texts, so that few of them are a fair sample, and an edit
// in one place does not select others everywhere.
func order(all []change, seed uint64) {
	hash := func(c change) uint64 {
		h := fnv.New64a()
		fmt.Fprintf(h, "%d %s", seed, c)
		return h.Sum64()
	}
	slices.SortFunc(all, func(a, b change) int { return cmp.Compare(hash(a), hash(b)) })
}

// evenly returns the first n changes of a draw from each package in turn. A package without further
// changes is skipped.
func evenly(all []change, n int) []change {
	turns := make(map[string]int) // changes of the package so far
	turn := make([]int, len(all))
	for i, c := range all {
		turn[i] = turns[c.dir]
		turns[c.dir]++
	}
	chosen := make([]change, 0, n)
	for round := 0; len(chosen) < n; round++ {
		for i, c := range all {
			if turn[i] == round && len(chosen) < n {
				chosen = append(chosen, c)
			}
		}
	}
	return chosen
}

// readKnown reads the changes that no test can notice. A line is a change as it is printed, with
// its reason behind "# ". A line that matches no change of the given folders is an error.
func readKnown(file string, all []change) (reasons map[string]string, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // It was only read.
	there, folders := map[string]bool{}, map[string]bool{}
	for _, c := range all {
		there[c.String()] = true
		folders[c.dir] = true
	}
	reasons = map[string]string{}
	var stale []string
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		text := lines.Text()
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		what, why, ok := strings.Cut(text, " # ")
		if !ok {
			return nil, fmt.Errorf("%s: no reason behind %q", file, what)
		}
		name, _, _ := strings.Cut(what, " | ")
		switch {
		case there[what]:
			reasons[what] = why
		case folders[path.Dir(name)]:
			stale = append(stale, what)
		}
	}
	if stale != nil {
		err = fmt.Errorf("%s: these fit no line any more:\n%s", file, strings.Join(stale, "\n"))
	}
	return reasons, errors.Join(err, lines.Err())
}
