package netpoll

import (
	"math"

	"golang.org/x/sys/unix"
)

// lose has the system drop so many of the packets that come for a TCP connection, before TCP sees them, and no more with 0. A
// filter of a socket of one's own needs no right. A connection that has no socket loses nothing.
func lose(c *Conn, part float64) {
	c.control(func(fd uintptr) {
		if part <= 0 {
			_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0)
			return
		}
		filter := dropping(part)
		_ = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]})
	})
}

// dropping is a filter (classic BPF) that takes a packet if a random number of 32 bits is above its part of them.
func dropping(part float64) []unix.SockFilter {
	const (
		random = 1<<32 - 0x1000 + 56 // SKF_AD_OFF + SKF_AD_RANDOM
		all    = math.MaxUint32
	)
	least := uint32(min(part, 1) * all)
	return []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: random},
		{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: least, Jt: 0, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: all},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
	}
}
