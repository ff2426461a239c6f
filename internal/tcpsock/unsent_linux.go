package tcpsock

import "syscall"

// Unsent is how many octets, about, a TCP socket holds that it may not send yet, because
// of the peer's window or the network's. Without it Linux takes up to tcp_wmem's most,
// 4 MiB as it comes, of a stream whose peer does not read. It is as much as one vectored
// write has, so that a socket with nothing to send takes all of one. SO_SNDBUF would
// bound the octets that are under way as well, and end the autotuning of the buffer.
const Unsent = 512 << 10

const tcpNotsentLowat = 25 // TCP_NOTSENT_LOWAT

func boundUnsent(fd int) {
	_ = syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, tcpNotsentLowat, Unsent)
}
