package tcpsock

import "golang.org/x/sys/unix"

// HeardOf is what TCP knows of the peer of a socket. ok is false of a socket that is none of TCP's, or is closed.
func HeardOf(fd uintptr) (h Heard, ok bool) {
	i, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return h, false
	}
	return Heard{
		Owes:    i.Unacked != 0 || i.Notsent_bytes != 0,
		Tries:   int(i.Retransmits) + int(i.Probes),
		Answers: i.Bytes_acked + i.Bytes_received + uint64(i.Segs_in-i.Data_segs_in),
		Closed:  i.State == unix.BPF_TCP_CLOSE_WAIT || i.State == unix.BPF_TCP_CLOSE,
	}, true
}

// Seconds of silence until a probe, seconds between two, and how many have no answer until TCP ends the connection: of one that asks, and
// as package net has it.
var (
	asking  = [3]int{1, 1, 127}
	wonders = [3]int{15, 15, 9}
)

// Ask has TCP ask the peer, after each second in which nothing came and nothing was sent, whether it is there; or as seldom as
// the connections of package net do. It is for those, whose keep-alive is on, and leaves what Mute has done.
func Ask(fd uintptr, on bool) {
	to := wonders
	if on {
		to = asking
	}
	for i, option := range []int{unix.TCP_KEEPIDLE, unix.TCP_KEEPINTVL, unix.TCP_KEEPCNT} {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, option, to[i])
	}
}

// Mute has TCP ask nobody any more, until unmute.
func Mute(fd uintptr) (unmute func(fd uintptr)) {
	was, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_KEEPALIVE)
	if err != nil || was == 0 {
		return nil
	}
	_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_KEEPALIVE, 0)
	return func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_KEEPALIVE, was) }
}
