//go:build linux && (amd64 || arm64)

package ucma

import (
	"errors"
	"syscall"
	"unsafe"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/umem"
	"github.com/softrnic/softrnic/rdmacore/internal/uverbs"
)

// File is one open of the device: an event channel with its ids.
type File struct {
	dev   *Device
	event int

	queue  []*event // guarded by dev.mu, as below
	closed bool
}

const hdrSize = int(unsafe.Sizeof(uabi.CmdHdr{}))

// A call is one command under way.
type call struct {
	file *File
	dev  *Device
	body []byte // the command without its header
	room int    // octets for the response
	args string // what --strace shows of the command and its result
	told string
}

// Write executes the command in the n octets at addr. It returns n, or a *uverbs.Refusal; EAGAIN of
// GET_EVENT says that the event of the caller's token has been dropped: read another token.
func (f *File) Write(addr uint64, n int) (int, error) {
	for _, n := range f.dev.nics {
		n.Settle()
	}
	c := call{file: f, dev: f.dev}
	cmd, err := c.take(addr, n)
	if err == nil {
		err = f.dev.dev.Planned(cmd.verb)
	}
	if err == nil {
		err = cmd.run(&c)
	}
	var r *uverbs.Refusal
	if err != nil && !errors.As(err, &r) {
		r = refuse(errnoOf(err), "%s", uverbs.Words(err))
	}
	f.trace(cmd, &c, r)
	if r != nil {
		if cmd == commands[uabi.CMGetEvent] && r.Errno != syscall.EAGAIN {
			f.giveBack()
		}
		return 0, r
	}
	return n, nil
}

// take copies a command in and checks its header, as ucma_write of Linux does. The
// header counts in octets here.
func (c *call) take(addr uint64, n int) (*command, error) {
	var h uabi.CmdHdr
	if n < hdrSize {
		return nil, refuse(syscall.EINVAL, "%d octets are no command", n)
	}
	if err := umem.Read(umem.Bytes(&h), addr); err != nil {
		return nil, refuse(syscall.EFAULT, "the command is not mapped")
	}
	if h.Command >= uint32(len(commands)) {
		return nil, refuse(syscall.EINVAL, "there is no command %d", h.Command)
	}
	cmd := commands[h.Command]
	if cmd == nil {
		return nil, refuse(syscall.ENOSYS, "command %d has no function", h.Command)
	}
	in := int(h.InWords)
	switch {
	case in+hdrSize > n:
		return cmd, refuse(syscall.EINVAL, "the header counts %d octets, there are %d", in, n-hdrSize)
	case in < cmd.min:
		return cmd, refuse(syscall.EINVAL, "%d octets are too short for the command, of %d", in, cmd.min)
	}
	c.body, c.room = make([]byte, min(in, cmd.size)), int(h.OutWords)
	if err := umem.Read(c.body, addr+uint64(hdrSize)); err != nil {
		return cmd, refuse(syscall.EFAULT, "the command is not mapped")
	}
	return cmd, nil
}

// respond writes what there is room for of a response, which has to be at least least octets.
func (c *call) respond(addr uint64, b []byte, least int) error {
	if c.room < least {
		return refuse(syscall.ENOSPC, "%d octets are too short for the response", c.room)
	}
	if umem.Write(addr, b[:min(len(b), c.room)]) != nil {
		return refuse(syscall.EFAULT, "the response is not mapped")
	}
	return nil
}

// Close destroys what the program left, and ends the File.
func (f *File) Close() {
	d := f.dev
	d.mu.Lock()
	if f.closed {
		d.mu.Unlock()
		return
	}
	f.closed = true
	var left []*id
	for _, i := range d.ids {
		if i.file == f {
			left = append(left, d.remove(i)...)
		}
	}
	f.queue = nil
	d.mu.Unlock()
	for _, i := range left {
		i.end()
	}
	_ = syscall.Close(f.event)
}
