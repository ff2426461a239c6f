package box

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/cmd/rnic/internal/fabric/layout"
)

// wire carries packets between two interfaces, with delay, rate and loss each way. It is for kernels without netem.
type wire struct {
	properties atomic.Pointer[layout.Properties]
	sockets    [2]*os.File
	ends       context.CancelFunc
	carriers   sync.WaitGroup
}

// Bounds of what is on its way.
const (
	waiting  = 16_384 // packets
	largest  = 10 + 14 + 4 + 65536
	received = 4 << 20 // octets that wait in a socket
)

// frame is a packet, and when it is there.
type frame struct {
	octets []byte
	at     time.Time
}

// newWire begins to carry.
func newWire(a, b int, p layout.Properties) (w *wire, err error) {
	w = &wire{}
	w.set(p)
	ctx, cancel := context.WithCancel(context.Background())
	w.ends = cancel
	for i, index := range []int{a, b} {
		if w.sockets[i], err = openPacket(index); err != nil {
			w.close()
			return nil, err
		}
	}
	for i := range w.sockets {
		from, to := w.sockets[i], w.sockets[1-i]
		frames := make(chan frame, waiting)
		draws := rand.New(rand.NewPCG(uint64(a), uint64(i))) //nolint:gosec // losses: the same again
		w.carriers.Go(func() { w.take(from, frames, draws) })
		w.carriers.Go(func() { deliver(ctx, to, frames) })
	}
	return w, nil
}

// set changes the properties, for what arrives from now on.
func (w *wire) set(p layout.Properties) { w.properties.Store(&p) }

func (w *wire) close() {
	w.ends()
	for _, s := range w.sockets {
		if s != nil {
			_ = s.Close()
		}
	}
	w.carriers.Wait()
}

// openPacket has a socket for all that arrives at an interface, in front of each packet what is left to do of its
// checksum and segments (virtio_net_hdr): so nothing has to be computed here.
func openPacket(index int) (*os.File, error) {
	const all = unix.ETH_P_ALL<<8 | unix.ETH_P_ALL>>8 // in network order
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	f := os.NewFile(uintptr(fd), "packets")
	for _, o := range [][3]int{
		{unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1}, {unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1}, {unix.SOL_SOCKET, unix.SO_RCVBUF, received},
	} {
		if err == nil {
			err = os.NewSyscallError("setsockopt", unix.SetsockoptInt(fd, o[0], o[1], o[2]))
		}
	}
	if err == nil {
		err = os.NewSyscallError("bind", unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: index}))
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// take reads one way's packets, and says when each is there.
func (w *wire) take(from *os.File, to chan<- frame, draws *rand.Rand) {
	defer close(to)
	buffer := make([]byte, largest)
	var free time.Time // when the wire has sent what came before
	for {
		n, err := from.Read(buffer)
		if errors.Is(err, os.ErrClosed) {
			return
		}
		if err != nil || n <= 10 { // the interface is down; the next read waits
			continue
		}
		p := w.properties.Load()
		now := time.Now()
		if p.Loss > 0 && draws.Float64() < p.Loss {
			continue
		}
		if free.Before(now) {
			free = now
		}
		if p.Rate > 0 {
			if free.Sub(now) > queueTime {
				continue // as a queue that is full
			}
			free = free.Add(time.Duration(float64(n-10) * 8 / float64(p.Rate) * 1e9))
		}
		select {
		case to <- frame{append([]byte(nil), buffer[:n]...), free.Add(p.Delay)}:
		default: // likewise
		}
	}
}

// deliver writes packets when it is time.
func deliver(ctx context.Context, to *os.File, from <-chan frame) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for f := range from {
		if d := time.Until(f.at); d > 0 {
			timer.Reset(d)
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
		}
		if ctx.Err() != nil {
			continue // until the taker has seen it too
		}
		_, _ = to.Write(f.octets) // an end that is down loses it
	}
}
