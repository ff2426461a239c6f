//go:build linux && (amd64 || arm64)

package uverbs

import (
	"bytes"
	"syscall"
	"unsafe"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/umem"
)

// command is what the device does about one command of the ABI. req and resp are the least octets of
// the struct and of the response; answers says that a legacy command begins with the
// address of its response, opens that it needs no context.
type command struct {
	name      string
	verb      string // as plans know it; "": they do not
	req, resp int
	answers   bool
	opens     bool
	hot       bool              // it sees to posts that wait itself
	run       func(*call) error // nil: the device has none
	// trace decodes the command, result what it answered: for --strace.
	trace  func(*call) string
	result func(*call) string
}

// legacy and extended are all commands, by number; what is missing is EOPNOTSUPP, as
// on Linux. They are filled by init functions because the commands themselves refer to them.
var (
	legacy   [uabi.CommandMask + 1]*command
	extended [uabi.CommandMask + 1]*command
)

// control makes a command of a function that gets the struct and fills in the response.
func control[Q, P any](name string, do func(*File, *Q, *P) error) *command {
	c := exControl(name, size[Q](), size[P](), do, func(*P, uint32) {})
	c.answers = size[P]() > 0
	return c
}

// exControl is control for an extended command: the struct may be shorter than Q and longer, then with
// zeros, and the response states what it has of P. The response is written once with zeros before, so that nothing is made
// that the program is not told of.
func exControl[Q, P any](name string, req, resp int, do func(*File, *Q, *P) error, length func(*P, uint32)) *command {
	c := &command{name: name, verb: verbOf(name), req: req, resp: resp}
	c.run = func(c *call) error {
		var q Q
		var p P
		n := copy(umem.Bytes(&q), c.body)
		if c.ext && len(bytes.TrimLeft(c.body[n:], "\x00")) > 0 {
			return refuse(syscall.EOPNOTSUPP, "there is something in fields that are not known")
		}
		if err := c.respond(umem.Bytes(&p)); err != nil {
			return err
		}
		if err := do(c.file, &q, &p); err != nil {
			return err
		}
		length(&p, uint32(min(c.room, size[P]())))
		return c.respond(umem.Bytes(&p))
	}
	c.trace = func(c *call) string {
		var q Q
		copy(umem.Bytes(&q), c.body)
		return Fields(&q)
	}
	if size[P]() > 0 {
		c.result = func(c *call) string {
			var p P
			_ = umem.Read(umem.Bytes(&p)[:min(c.room, size[P]())], c.resp)
			return Fields(&p)
		}
	}
	return c
}

// withDriver lets the driver_data of our preload library be absent: the command is at least req octets long.
func withDriver(c *command, req int) *command {
	c.req = req
	return c
}

func size[T any]() int { return int(unsafe.Sizeof(*new(T))) }
