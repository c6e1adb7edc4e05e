package recording

import (
	"context"
	"fmt"
	"reflect"
	"slices"
)

// Error is the recorded form of an error: its text, and the type and text of each error in its
// tree, so that errors.Is finds the same errors. errors.As does not work: the values are not
// recorded.
type Error struct {
	Text string
	Tree []ErrorName
}

// ErrorName identifies an error in a tree.
type ErrorName struct{ Type, Text string }

// maxErrors bounds the errors of one tree.
const maxErrors = 64

// exact are the types of errors that consist only of text and identity.
var exact = map[string]bool{
	"*errors.errorString": true, "*fmt.wrapError": true, "*fmt.wrapErrors": true, "*errors.joinError": true,
	reflect.TypeOf(context.DeadlineExceeded).String(): true,
}

// NewError returns the recorded form of an error. It returns an error if a part of the tree has
// more data than a recording can hold.
func NewError(err error) (*Error, error) {
	e := &Error{Text: err.Error()}
	return e, e.add(err)
}

func (e *Error) add(err error) error {
	if len(e.Tree) >= maxErrors {
		return fmt.Errorf("error wraps more than %d errors", maxErrors)
	}
	name := nameOf(err)
	e.Tree = append(e.Tree, name)
	if !exact[name.Type] {
		return fmt.Errorf("an error of type %s cannot be recorded: it may have data besides its text", name.Type)
	}
	var under []error
	switch u := err.(type) { //nolint:errorlint // The code walks the tree of errors itself.
	case interface{ Unwrap() error }:
		if one := u.Unwrap(); one != nil {
			under = []error{one}
		}
	case interface{ Unwrap() []error }:
		under = u.Unwrap()
	}
	for _, one := range under {
		if err := e.add(one); err != nil {
			return err
		}
	}
	return nil
}

func nameOf(err error) ErrorName {
	return ErrorName{Type: reflect.TypeOf(err).String(), Text: err.Error()}
}

// Error returns the recorded text.
func (e *Error) Error() string { return e.Text }

// Is lets errors.Is find the errors in the recorded tree.
func (e *Error) Is(target error) bool {
	return slices.Contains(e.Tree, nameOf(target))
}
