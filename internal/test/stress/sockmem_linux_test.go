package stress

import (
	"net/netip"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// socketMemory is the kernel's memory of this process's sockets at a listener's address: data and what manages them, that came and were
// not read, and that wait to go or to be acknowledged.
func socketMemory(addr string) (sum octets) {
	at, err := netip.ParseAddrPort(addr)
	if err != nil {
		return 0
	}
	dir, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	for _, e := range dir {
		fd, _ := strconv.Atoi(e.Name()) // the names are numbers
		local, err := unix.Getsockname(fd)
		if err != nil {
			continue
		}
		if _, err := unix.Getpeername(fd); err != nil { // it listens
			continue
		}
		if v4, ok := local.(*unix.SockaddrInet4); !ok || v4.Port != int(at.Port()) {
			continue
		}
		const receive, queued, reserved = 0, 5, 4 // SK_MEMINFO_RMEM_ALLOC, WMEM_QUEUED and FWD_ALLOC of linux/sock_diag.h
		var info [9]uint32
		size := uint32(unsafe.Sizeof(info))
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
			uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
		if errno == 0 {
			sum += octets(info[receive]) + octets(info[queued]) + octets(info[reserved])
		}
	}
	return sum
}
