package netloop

// Predicted lets clients predict the objects of the class that they own: see client.Predict. The
// server and the client then run the same function on the same state, so both keep that state as
// the wire carries it. The live state of an object that was edited is rounded at the end of each
// fixed step, by the built-in system netvar.round behind all others of [FixedUpdate], and again
// when it is captured. For the game this means:
//
//   - What a step adds to a number must be worth a unit of it, or it is lost each time: a speed of
//     0.01 in a second never moves a position in steps of 1/256. Choose finer units, or leave quant
//     out, for what a step adds to.
//   - What is local (`net:"-"`) is not known to the client, which starts from zero there. A step
//     must not depend on it, nor on fields that the owner may not read.
//   - A field with interval or threshold reaches the client late or never. A step that changes such
//     a field is corrected again and again.
//   - What is edited outside FixedUpdate reaches the client with the snapshot, as a correction.
func Predicted() ClassOption { return func(c *class) { c.predicted = true } }
