package verbs

// Queued is how many completions wait to be polled, for TestModel: it has to know
// that all have come without taking them. It is no method: those are verbs.
func Queued(c *CQ) int { return c.q.Len() }
