package netloop

// Predicted lets clients predict their own objects of the class: see client.Predict. The server and
// the client then run the same function on the same state, so both keep that state in its encoded
// precision. The live state of an object that was edited is rounded at the end of each fixed step,
// by the built-in system netvar.round behind all others of [FixedUpdate], and again when it is
// captured. For the game this means:
//
//   - A step's change of a number must be at least a unit of it, or it is lost each time: a speed
//     of 0.01 in a second never moves a position in steps of 1/256. Choose finer units, or leave
//     quant out, for numbers that a step adds to.
//   - Local fields (`net:"-"`) are not sent to the client, which starts from zero there. A step
//     must not depend on them, nor on fields that the owner may not read.
//   - A field with interval or threshold reaches the client late or never. If a step changes such a
//     field, the client is corrected repeatedly.
//   - An edit outside FixedUpdate reaches the client with the snapshot, as a correction.
func Predicted() ClassOption { return ClassOption{func(c *class) { c.predicted = true }} }
