//go:build linux && (amd64 || arm64)

package ucma

import (
	"syscall"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/umem"
)

// migrateID moves an id to this File, with its events and, of a listener, the children that the program
// was not told of. The File that it leaves is the id's own, whatever descriptor the program names: the device
// does not see the numbers that a program's descriptors have.
func migrateID(c *call, q *uabi.MigrateID) error {
	if c.room < 4 {
		return refuse(syscall.ENOSPC, "%d octets are too short for the response", c.room)
	}
	d := c.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	i := d.ids[q.ID]
	if i == nil || c.file.closed {
		return refuse(syscall.ENOENT, "there is no id %d", q.ID)
	}
	r := uabi.MigrateIDResp{EventsReported: i.reported}
	if err := c.respond(q.Response, umem.Bytes(&r), 4); err != nil {
		return err
	}
	if i.file != c.file {
		events := i.file.drop(i)
		i.file = c.file
		for _, e := range events {
			if e.child != nil {
				e.child.file = c.file
			}
			c.file.put(e)
		}
	}
	c.traceAnswer("events_reported=%d", r.EventsReported)
	return nil
}
