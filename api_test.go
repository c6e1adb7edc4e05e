package netloop_test

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// public are the packages of the API.
var public = []string{"", "client", "app", "netlooptest", "loadtest"}

// internalAliases are the exported aliases of internal types: conversions of stages and codes would
// cost more lines than the aliases hide.
var internalAliases = []string{"netloop.Stage", "netloop.Code", "client.Transport"}

// No exported declaration of the API mentions an internal package: a game's author cannot read its
// documentation.
func TestTheAPIMentionsNoInternalPackage(t *testing.T) {
	for _, s := range parsed(t) {
		if s.test || !slices.Contains(public, s.dir) {
			continue
		}
		internal := map[string]bool{}
		for _, p := range s.imports() {
			if strings.HasPrefix(p, module+"/internal/") {
				internal[p[strings.LastIndex(p, "/")+1:]] = true
			}
		}
		for _, decl := range s.file.Decls {
			for _, of := range exportedTypes(decl) {
				ast.Inspect(of.node, func(n ast.Node) bool {
					if sel, ok := n.(*ast.SelectorExpr); ok {
						if p, ok := sel.X.(*ast.Ident); ok && internal[p.Name] && !slices.Contains(internalAliases, s.file.Name.Name+"."+of.name) {
							t.Errorf("%s: %s mentions %s.%s", s.fset.Position(sel.Pos()), of.name, p.Name, sel.Sel.Name)
						}
					}
					return true
				})
			}
		}
	}
}

// exportedType is a type in an exported declaration.
type exportedType struct {
	name string
	node ast.Node
}

// exportedTypes returns the types that a declaration shows in the documentation.
func exportedTypes(decl ast.Decl) (all []exportedType) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && (d.Recv == nil || exportedReceiver(d.Recv.List[0].Type)) {
			all = append(all, exportedType{d.Name.Name, d.Type})
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				if spec.Name.IsExported() {
					all = append(all, shown(spec.Name.Name, spec.Type)...)
				}
			case *ast.ValueSpec:
				if spec.Type != nil && d.Tok == token.VAR && spec.Names[0].IsExported() {
					all = append(all, exportedType{spec.Names[0].Name, spec.Type})
				}
			}
		}
	}
	return all
}

// shown returns the exported parts of a type's declaration.
func shown(name string, of ast.Expr) (all []exportedType) {
	var fields *ast.FieldList
	switch of := of.(type) {
	case *ast.StructType:
		fields = of.Fields
	case *ast.InterfaceType:
		fields = of.Methods
	default:
		return []exportedType{{name, of}}
	}
	for _, f := range fields.List {
		if len(f.Names) == 0 || slices.ContainsFunc(f.Names, (*ast.Ident).IsExported) {
			all = append(all, exportedType{name, f.Type})
		}
	}
	return all
}

// exportedReceiver reports whether the type of a method is exported.
func exportedReceiver(of ast.Expr) bool {
	exported := false
	ast.Inspect(of, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && !exported {
			exported = id.IsExported()
			return false
		}
		return true
	})
	return exported
}
