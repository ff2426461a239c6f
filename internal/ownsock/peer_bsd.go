//go:build darwin || freebsd

package ownsock

import "golang.org/x/sys/unix"

// peerUser is the user of the process at the other end when it connected, or listened.
func peerUser(fd int) (int, error) {
	cred, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(cred.Uid), nil
}
