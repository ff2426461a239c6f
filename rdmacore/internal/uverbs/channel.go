//go:build linux && (amd64 || arm64)

package uverbs

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
)

// A channel is what a program reads events from: a completion channel, or the descriptor of
// asynchronous events. The program has one end of a pipe and reads records from it, or waits in poll,
// without asking anybody.
//
// The commands that destroy an object answer how many of its events the program has *read*, and
// libibverbs waits until as many are acknowledged. So what was not read is taken out of the
// pipe then, and not counted, as Linux takes it out of the event file's list.
type channel struct {
	dev  *Device
	size int // of a record, in octets

	mu      sync.Mutex
	fd      int // the program's end: its number at first
	inode   uint64
	w       int       // our end
	r       int       // our own of the program's end: not blocking, whatever the program makes of its
	sources []*source // whose the records last written are, oldest first; those not read are the last of them
	users   int       // queues that report here
	queues  []*cq     // those that exist
	closed  bool
}

// A source is an object as the origin of the events of one channel.
type source struct {
	ch *channel
	// reported counts the events that were put in the channel and not taken back, and dead says that
	// there will be no more; both under ch.mu.
	reported uint32
	dead     bool
}

// keepSources is how many records a pipe can hold: 64 KiB of 8 octets.
const keepSources = 1 << 13

// newChannel makes a channel, and the descriptor that the program gets. Errors: those of pipe(2).
func newChannel(d *Device, size int) (*channel, int, error) {
	var p [2]int
	if err := syscall.Pipe2(p[:], syscall.O_CLOEXEC); err != nil {
		return nil, 0, &Refusal{err.(syscall.Errno), "no pipe could be made"} //nolint:errorlint // it is an Errno
	}
	c := &channel{dev: d, size: size, fd: p[0], w: p[1]}
	c.inode = inode(c.fd)
	// To open it again is the only way to a descriptor with flags of its own: those of a
	// duplicate are the program's.
	r, err := syscall.Open(fmt.Sprintf("/proc/self/fd/%d", c.fd), syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err == nil {
		err = syscall.SetNonblock(c.w, true)
	}
	if err != nil {
		for _, fd := range p {
			_ = syscall.Close(fd)
		}
		return nil, 0, refuse(refusal(err).Errno, "no pipe could be made: is /proc mounted?")
	}
	c.r = r
	d.Own(c.w)
	d.Own(c.r)
	return c, c.fd, nil
}

// inode names what a descriptor is of; 0 if it is not open.
func inode(fd int) uint64 {
	var st syscall.Stat_t
	if syscall.Fstat(fd, &st) != nil {
		return 0
	}
	return st.Ino
}

// close closes our ends: the program reads the end of the channel once it has read what is there.
func (c *channel) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		c.dev.chans.CompareAndDelete(c.fd, c)
		_ = syscall.Close(c.w)
		_ = syscall.Close(c.r)
	}
}

// abandoned reports whether the program has closed its end, which nobody tells us, and nothing reports here.
func (c *channel) abandoned() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.users == 0 && inode(c.fd) != c.inode
}

// put writes a record. It reports false if there is no room: the program has left 64 KiB unread.
func (s *source) put(rec []byte) bool {
	c := s.ch
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.dead || c.closed {
		return true
	}
	if _, err := syscall.Write(c.w, rec); err != nil {
		return false
	}
	s.reported++
	if len(c.sources) >= 2*keepSources {
		c.sources = append(c.sources[:0], c.sources[len(c.sources)-keepSources:]...)
	}
	c.sources = append(c.sources, s)
	return true
}

// completion puts a record of a completion channel: the user handle of the queue.
func (s *source) completion(user uint64) bool {
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], user)
	return s.put(b[:])
}

// asynchronous puts a record of an asynchronous event.
func (s *source) asynchronous(element uint64, kind uint32) bool {
	var b [16]byte
	binary.NativeEndian.PutUint64(b[:], element)
	binary.NativeEndian.PutUint32(b[8:], kind)
	return s.put(b[:])
}

// end takes the unread records of the source out of its channel, and reports how many others were read.
func (s *source) end() uint32 {
	if s == nil || s.ch == nil {
		return 0
	}
	c := s.ch
	c.mu.Lock()
	defer c.mu.Unlock()
	s.dead = true
	if s.reported == 0 || c.closed {
		return s.reported
	}
	left := make([]byte, 0, 1<<12)
	for {
		var b [1 << 12]byte
		n, err := unix.Read(c.r, b[:])
		if n <= 0 || err != nil {
			break
		}
		left = append(left, b[:n]...)
	}
	unread := min(len(left)/c.size, len(c.sources))
	owners := c.sources[len(c.sources)-unread:]
	c.sources = append([]*source(nil), owners[:0]...)
	left = left[len(left)-unread*c.size:]
	keep := left[:0]
	for i, o := range owners {
		if o == s {
			s.reported--
			continue
		}
		keep = append(keep, left[i*c.size:(i+1)*c.size]...)
		c.sources = append(c.sources, o)
	}
	for len(keep) > 0 { // there is room: it was there before
		n, err := unix.Write(c.w, keep)
		if err != nil {
			break
		}
		keep = keep[n:]
	}
	return s.reported
}

func init() {
	legacy[uabi.CmdCreateCompChannel] = control("CREATE_COMP_CHANNEL", (*File).createChannel)
}

func (f *File) createChannel(_ *uabi.CreateCompChannel, p *uabi.CreateCompChannelResp) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return errClosed
	}
	f.sweep()
	c, fd, err := newChannel(f.dev, size[uabi.CompEventDesc]())
	if err != nil {
		return err
	}
	f.channels = append(f.channels, c)
	p.FD = uint32(fd)
	f.dev.chans.Store(fd, c)
	if tell := f.dev.config.Channel; tell != nil {
		tell(fd)
	}
	return nil
}

// sweep closes the channels that the program has closed.
func (f *File) sweep() {
	f.channels = slices.DeleteFunc(f.channels, func(c *channel) bool {
		gone := c.abandoned()
		if gone {
			c.close()
		}
		return gone
	})
}

// channel is the completion channel that the program has under a descriptor, duplicated or not; nil for -1.
// Another descriptor is EBADF.
func (f *File) channel(fd int32) (*channel, error) {
	if fd < 0 {
		return nil, nil
	}
	if at := inode(int(fd)); at != 0 {
		for _, c := range f.channels {
			if c.inode == at {
				c.mu.Lock()
				c.users++
				c.mu.Unlock()
				return c, nil
			}
		}
	}
	return nil, refuse(syscall.EBADF, "descriptor %d is no completion channel of this context", fd)
}

// join says that q, counted already, is there.
func (c *channel) join(q *cq) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queues = append(slices.Clip(c.queues), q)
}

// leave says that q reports to c no more, or was not made.
func (c *channel) leave(q *cq) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.users--
	c.queues = slices.DeleteFunc(slices.Clone(c.queues), func(o *cq) bool { return o == q })
}
