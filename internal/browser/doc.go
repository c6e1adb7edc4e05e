// Package browser tests the examples' pages: they are built, the arena's page steers like the
// server, and, in the files beside this one, a real browser plays them on the real servers, over
// each transport. The latter tests need Chromium, Node and the npm modules, and are skipped
// without them.
package browser
