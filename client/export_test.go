package client

// Forget lets the client lose all baselines, so that it refuses deltas from them for good.
func (c *Client) Forget() { c.replica.Forget() }
