package state

import (
	"reflect"

	"github.com/netloop/netloop/internal/codec"
)

// BindClass returns the client's binding of a class of the server, with the server's name and
// layout and the live values of own. If own is nil, the client does not declare the class: its
// objects are stored, because records and digests include them, but are not visible to the game. If
// a field has another type on the client, the error is a *codec.Mismatch.
func BindClass(name string, own *Class, layout codec.Type, budget *codec.Budget) (*Class, error) {
	t, e := reflect.TypeFor[nobody](), []codec.Encodings(nil)
	if own != nil {
		t, e = own.Type(), own.plan.Encodings()
	}
	p, err := codec.Bind(t, layout, budget, e...)
	if err != nil {
		return nil, err
	}
	c := newClass(name, p)
	if c.Unknown = own == nil; !c.Unknown {
		c.own = own
	}
	return c, nil
}

// nobody is the type of live values of undeclared classes. A game cannot name this type.
type nobody struct{}

// Shows reports whether two values differ on this side: in the owner, or in a field that both sides
// have.
func (c *Class) Shows(a, b *codec.Values) bool {
	return c.Owner(a) != c.Owner(b) || c.plan.Shows(a, b)
}
