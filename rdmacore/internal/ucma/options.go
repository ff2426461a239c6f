//go:build linux && (amd64 || arm64)

package ucma

import (
	"syscall"
	"unsafe"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/umem"
)

func (c *call) respondAttr(addr uint64, r *uabi.QPAttr) error {
	return c.respond(addr, umem.Bytes(r), int(unsafe.Sizeof(*r)))
}

// setOption sets an option of an id, before its socket is made.
func setOption(c *call, q *uabi.SetOption) error {
	var value [4]byte
	if q.OptLen == 0 || q.OptLen > maxOption {
		return refuse(syscall.EINVAL, "an option of %d octets", q.OptLen)
	}
	if err := umem.Read(value[:min(q.OptLen, 4)], q.OptVal); err != nil {
		return refuse(syscall.EFAULT, "the option's value is not mapped")
	}
	return c.with(q.ID, func(i *id) error {
		switch {
		case q.Level == uabi.CMOptionID:
			return i.set(q.OptName, int(q.OptLen), value)
		case q.Level == uabi.CMOptionIB && q.OptName == uabi.CMOptionIBPath:
			return i.setPath(int(q.OptLen))
		}
		return refuse(syscall.ENOSYS, "there is no option %d of level %d", q.OptName, q.Level)
	})
}

const (
	maxOption = 1 << 16
	// pathRecDataLen is the length of a struct ib_path_rec_data.
	pathRecDataLen = 72
)

// set sets an option of the level ID, of n octets; dev.mu is held.
func (i *id) set(name uint32, n int, value [4]byte) error {
	length, ok := map[uint32]int{
		uabi.CMOptionTOS: 1, uabi.CMOptionReuseAddr: 4, uabi.CMOptionAFOnly: 4, uabi.CMOptionACKTimeout: 1,
	}[name]
	if !ok {
		return refuse(syscall.ENOSYS, "there is no option %d of an id", name)
	}
	if n != length {
		return refuse(syscall.EINVAL, "option %d has %d octets, not %d", name, length, n)
	}
	on := value != [4]byte{}
	switch name {
	case uabi.CMOptionTOS:
		i.options.tos = int(value[0])
	case uabi.CMOptionReuseAddr:
		if err := i.in(idle); err != nil && (!on || i.state == listening) {
			return err
		}
		i.options.reuseAddr = on
	case uabi.CMOptionAFOnly:
		if err := i.in(idle, bound); err != nil {
			return err
		}
		i.options.afOnly = on
	case uabi.CMOptionACKTimeout:
		if i.options.datagrams {
			return refuse(syscall.EINVAL, "datagrams are not acknowledged")
		}
		i.options.ackTimeout = value[0]
	}
	return nil
}

// setPath is RESOLVE_ROUTE by path records of the program's, which IP has no use for.
func (i *id) setPath(n int) error {
	if n%pathRecDataLen != 0 {
		return refuse(syscall.EINVAL, "path records of %d octets, not of %d each", n, pathRecDataLen)
	}
	return i.resolveRoute()
}

// notify tells the device of an event of a queue pair (IB_EVENT_COMM_EST): an iWARP device knows that itself.
func notify(c *call, q *uabi.Notify) error {
	return c.with(q.ID, func(*id) error { return nil })
}

// resolveIBService refuses: the subnet manager of an InfiniBand network knows services, and no other.
func resolveIBService(c *call, q *uabi.ResolveIBService) error {
	return c.with(q.ID, func(*id) error { return refuse(syscall.EOPNOTSUPP, "services are looked up in an InfiniBand network") })
}

// joinIPMcast refuses: TCP has no multicast, and no iWARP device.
func joinIPMcast(c *call, q *uabi.JoinIPMcast) error { return c.noMcast(q.ID) }

func joinMcast(c *call, q *uabi.JoinMcast) error { return c.noMcast(q.ID) }

func (c *call) noMcast(num uint32) error {
	return c.with(num, func(*id) error { return refuse(syscall.ENOSYS, "an iWARP device has no multicast") })
}

// leaveMcast finds no group to leave.
func leaveMcast(_ *call, q *uabi.DestroyID) error {
	return refuse(syscall.ENOENT, "there is no multicast group %d", q.ID)
}
