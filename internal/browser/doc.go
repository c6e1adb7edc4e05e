// Package browser tests the pages of the examples. The tests check that the pages are built, and
// that the arena's page computes the same steering as the server. In the other files a real
// browser plays on real servers, over each transport. Those tests need Chromium, Node and the npm
// modules, and are skipped without them.
package browser
