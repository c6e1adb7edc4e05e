// Package pgtest runs the tests of stores on PostgreSQL. It is a module of its own, because no
// package of netloop needs the driver.
package pgtest
