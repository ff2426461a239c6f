package tcpsock

import "golang.org/x/sys/unix"

// Acked is how many octets the peer's system has acknowledged of a socket of TCP's. The count begins at 0 or, as the SYN may be
// counted, 1: see Taken.
func Acked(fd uintptr) (n uint64, ok bool) {
	i, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return 0, false
	}
	return i.Bytes_acked, true
}

// Taken is what Acked comes to when the peer's system has acknowledged all that TCP has taken so far. Nobody writes meanwhile.
func Taken(fd uintptr) (n uint64, ok bool) {
	for range 4 { // acknowledgements come meanwhile, but not for long
		before, ok := Acked(fd)
		if !ok {
			return 0, false
		}
		left, err := unix.IoctlGetInt(int(fd), unix.SIOCOUTQ)
		if err != nil {
			return 0, false
		}
		if after, _ := Acked(fd); after == before {
			return before + uint64(left), true
		}
	}
	return 0, false
}
