package netloop

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/netloop/netloop/internal/loop"
)

// Each method of a Tick refuses to work after the call that the Tick was made for, and names
// itself.
func TestATickThatOutlivesItsCallIsRefused(t *testing.T) {
	tick := reflect.ValueOf(&Tick{now: new(loop.Now)})
	for i := range tick.NumMethod() {
		name, method := tick.Type().Method(i).Name, tick.Method(i)
		if name == "String" { // It is for logs.
			continue
		}
		args := make([]reflect.Value, method.Type().NumIn())
		for k := range args {
			args[k] = reflect.Zero(method.Type().In(k))
		}
		func() {
			defer func() {
				if said := fmt.Sprint(recover()); !strings.HasPrefix(said, "netloop: Tick."+name+": this *Tick outlived its call.") {
					t.Errorf("%s says %q", name, said)
				}
			}()
			method.Call(args)
		}()
	}
}
