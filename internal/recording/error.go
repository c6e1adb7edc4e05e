package recording

import (
	"context"
	"fmt"
	"reflect"
)

// Error is an error as a recording keeps it: its text, and of each error in its tree the
// type and the text, so that errors.Is finds the same ones. errors.As cannot: the values
// are not kept.
type Error struct {
	Text string
	Tree []ErrorName
}

// ErrorName is how an error in a tree is known again.
type ErrorName struct{ Type, Text string }

// maxErrors bounds the errors of one tree.
const maxErrors = 64

// exact are the types of errors of which text and identity are all there is.
var exact = map[string]bool{
	"*errors.errorString": true, "*fmt.wrapError": true, "*fmt.wrapErrors": true, "*errors.joinError": true,
	reflect.TypeOf(context.DeadlineExceeded).String(): true,
}

// NewError keeps an error. It reports which error of the tree has more to it than a
// recording can hold, if there is one.
func NewError(err error) (*Error, error) {
	e := &Error{Text: err.Error()}
	return e, e.add(err)
}

func (e *Error) add(err error) error {
	if len(e.Tree) >= maxErrors {
		return fmt.Errorf("an error of more than %d errors", maxErrors)
	}
	name := nameOf(err)
	e.Tree = append(e.Tree, name)
	if !exact[name.Type] {
		return fmt.Errorf("an error of type %s, which may hold more than its text", name.Type)
	}
	var under []error
	switch u := err.(type) { //nolint:errorlint // It is the tree itself that is walked.
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

// Is lets errors.Is find what the recorded error was made of.
func (e *Error) Is(target error) bool {
	want := nameOf(target)
	for _, have := range e.Tree {
		if have == want {
			return true
		}
	}
	return false
}
