package ownsock

import "syscall"

// peerUser is the user of the process at the other end when it connected, or listened.
func peerUser(fd int) (int, error) {
	cred, err := syscall.GetsockoptUcred(fd, syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(cred.Uid), nil
}
