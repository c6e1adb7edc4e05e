// Package browser has the tests of the examples' pages: that they are built, that the arena's
// steers as the server does, and, in the files beside this one, that a real browser plays them on
// the real servers, over each of their ways in. Those need Chromium, Node and what npm installs,
// and are skipped where one is missing.
package browser
