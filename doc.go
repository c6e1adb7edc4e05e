package netloop
