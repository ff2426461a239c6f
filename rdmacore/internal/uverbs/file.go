//go:build linux && (amd64 || arm64)

package uverbs

import (
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/umem"
	"github.com/softrnic/softrnic/verbs"
)

// File is one open of the device: a context with its objects.
type File struct {
	dev *Device
	// async has the channel of asynchronous events once there is a context.
	async atomic.Pointer[channel]
	// rings are where completions wait for the program, ringID is who this is there.
	rings  *Rings
	ringID uint32
	posts  *PostRings
	// gone is set once the device was unplugged.
	gone atomic.Bool

	pds  table[pd]
	mrs  table[mr]
	cqs  table[cq]
	srqs table[srq]
	qps  table[QP]
	ahs  table[ah]
	mws  table[mw]

	mu       sync.Mutex     // creation, destruction and the fields below
	tags     map[uint32]*mr // by lkey
	channels []*channel
	closed   bool
}

// A call is one command under way. Calls are used again: nothing of one is kept.
type call struct {
	file *File
	buf  []byte // the command from its header on
	body []byte // what is behind the headers
	resp uint64 // where the response goes
	room int    // for how many octets
	ext  bool   // of the extended form
	bad  uint32 // the request that a post did not take, from 1; else 0
	// tells is whether one of sends asks for a completion.
	tells bool
	// dry is that requests are looked at only: nothing of the queue pair changes.
	dry bool

	sends    [maxList]verbs.Request
	atomics  [maxList]verbs.AtomicRequest
	binds    [maxList]verbs.BindRequest
	outgoing [maxList]outgoing
	slots    [maxList + 1]slots // after so many of sends
	recvs    [maxList]verbs.Recv
	sges     []verbs.SGE
	done     [pollBatch]verbs.Completion
	wcs      [pollBatch]uabi.WC
	unfilled [64]byte
}

var calls = sync.Pool{New: func() any { return &call{buf: make([]byte, 0, 4096)} }}

const (
	hdrSize   = int(unsafe.Sizeof(uabi.CmdHdr{}))
	exHdrSize = hdrSize + int(unsafe.Sizeof(uabi.ExCmdHdr{}))
	// maxCommand bounds a command: what the words of an extended header can count.
	maxCommand = exHdrSize + 2*0xffff*8
)

// Write executes the command in the n octets at addr. It returns n, or a *Refusal.
func (f *File) Write(addr uint64, n int) (int, error) {
	c := calls.Get().(*call)
	err := f.write(c, addr, n)
	c.file = nil
	calls.Put(c)
	if err != nil {
		return 0, refusal(err)
	}
	return n, nil
}

func (f *File) write(c *call, addr uint64, n int) error {
	cmd, err := f.take(c, addr, n)
	if f.dev.config.Trace != nil {
		return f.traced(c, cmd, err)
	}
	if err != nil {
		return err
	}
	if !cmd.hot {
		f.dev.Settle()
	}
	if err := f.dev.Planned(cmd.verb); err != nil {
		return err
	}
	return cmd.run(c)
}

// take copies a command in and checks its headers, as verify_hdr of Linux does.
func (f *File) take(c *call, addr uint64, n int) (*command, error) {
	c.file, c.body, c.bad = f, nil, 0
	if n < hdrSize || n > maxCommand {
		return nil, refuse(syscall.EINVAL, "a command of %d octets", n)
	}
	if cap(c.buf) < n {
		c.buf = make([]byte, n)
	}
	c.buf = c.buf[:n]
	if err := umem.Read(c.buf, addr); err != nil {
		return nil, refuse(syscall.EFAULT, "the command is not mapped")
	}
	h := view[uabi.CmdHdr](c.buf)
	number := h.Command & uabi.CommandMask
	c.ext = h.Command&uabi.FlagExtended != 0
	if h.Command&^(uabi.FlagExtended|uabi.CommandMask) != 0 {
		return nil, refuse(syscall.EINVAL, "command %#x has unknown flags", h.Command)
	}
	var cmd *command
	if c.ext {
		cmd = extended[number]
	} else {
		cmd = legacy[number]
	}
	switch {
	case cmd == nil:
		return nil, refuse(syscall.EOPNOTSUPP, "there is no command %#x", h.Command)
	case cmd.run == nil:
		return cmd, refuse(syscall.EOPNOTSUPP, "an iWARP device has no %s", cmd.name)
	}
	if f.gone.Load() {
		return cmd, refuse(syscall.EIO, "the device was unplugged")
	}
	if err := c.lengths(cmd, h); err != nil {
		return cmd, err
	}
	if f.async.Load() == nil && !cmd.opens {
		return cmd, refuse(syscall.EINVAL, "there is no context: GET_CONTEXT comes first")
	}
	return cmd, nil
}

func (c *call) lengths(cmd *command, h *uabi.CmdHdr) error {
	n := len(c.buf)
	if c.ext {
		if n < exHdrSize {
			return refuse(syscall.EINVAL, "%d octets are too short for the extended header", n)
		}
		x := view[uabi.ExCmdHdr](c.buf[hdrSize:])
		n -= exHdrSize
		in, out := int(h.InWords)*8, int(h.OutWords)*8
		switch {
		case in+int(x.ProviderInWords)*8 != n:
			return refuse(syscall.EINVAL, "the header counts %d octets, there are %d", in+int(x.ProviderInWords)*8, n)
		case in < cmd.req:
			return refuse(syscall.ENOSPC, "%d octets are too short for the command", in)
		case x.CmdHdrReserved != 0:
			return refuse(syscall.EINVAL, "reserved is not 0")
		case x.Response != 0 && out == 0 && x.ProviderOutWords == 0, x.Response == 0 && (out != 0 || x.ProviderOutWords != 0):
			return refuse(syscall.EINVAL, "the response has an address and no length, or the reverse")
		case x.Response != 0 && out < cmd.resp:
			return refuse(syscall.ENOSPC, "%d octets are too short for the response", out)
		}
		c.body, c.resp, c.room = c.buf[exHdrSize:exHdrSize+in], x.Response, out
		return nil
	}
	in := int(h.InWords) * 4
	if in != n {
		return refuse(syscall.EINVAL, "the header counts %d octets, there are %d", in, n)
	}
	if n-hdrSize < cmd.req {
		return refuse(syscall.ENOSPC, "%d octets are too short for the command", n)
	}
	c.body, c.resp, c.room = c.buf[hdrSize:n], 0, 0
	if cmd.answers {
		c.resp, c.room = view[uabi.Response](c.body).Response, int(h.OutWords)*4
	}
	if c.room < cmd.resp {
		return refuse(syscall.ENOSPC, "%d octets are too short for the response", c.room)
	}
	return nil
}

// view is the struct at the beginning of b, which is long enough. Buffers of commands are aligned to
// 8 octets, and so are their parts.
func view[T any](b []byte) *T {
	_ = b[unsafe.Sizeof(*new(T))-1]
	return (*T)(unsafe.Pointer(unsafe.SliceData(b)))
}

// respond writes the response: what there is room for, and zeros behind it.
func (c *call) respond(b []byte) error {
	n := min(len(b), c.room)
	if umem.Write(c.resp, b[:n]) != nil {
		return refuse(syscall.EFAULT, "the response is not mapped")
	}
	for at := n; at < c.room; {
		k := min(c.room-at, len(c.unfilled))
		if umem.Write(c.resp+uint64(at), c.unfilled[:k]) != nil {
			return refuse(syscall.EFAULT, "the response is not mapped")
		}
		at += k
	}
	return nil
}
