package netloop

import "time"

// SetIdle says for how long a client of a server that does not listen yet may give no sign
// of life.
func SetIdle(s *Server, idle time.Duration) { s.idle = idle }
