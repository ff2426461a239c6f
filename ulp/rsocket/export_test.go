package rsocket

import "github.com/softrnic/softrnic/cm"

// Connection is what it runs over.
func (c *Conn) Connection() *cm.Conn { return c.cm }
