//go:build linux || darwin || freebsd

package ownsock

import (
	"fmt"
	"net"
	"os"
)

// sameUser reports a process at the other end that is another user's, root's too.
func sameUser(c *net.UnixConn) error {
	rc, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var uid int
	failed := rc.Control(func(fd uintptr) { uid, err = peerUser(int(fd)) })
	if failed != nil {
		err = failed
	}
	if err != nil {
		return fmt.Errorf("whose process it is cannot be told: %w", err)
	}
	if uid != os.Getuid() {
		return fmt.Errorf("it is a process of another user (%d)", uid)
	}
	return nil
}
