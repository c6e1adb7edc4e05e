// Package quicnet drives transport sessions over QUIC.
package quicnet
