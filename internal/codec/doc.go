// Package codec turns plain Go structs into bytes and back.
package codec
