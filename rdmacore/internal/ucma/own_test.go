//go:build linux && (amd64 || arm64)

package ucma_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/uverbs"
)

// sockets are the descriptors of this process that are sockets.
func sockets(t *testing.T) map[int]bool {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	all := map[int]bool{}
	for _, e := range list {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(to, "socket:") {
			fd, err := strconv.Atoi(e.Name())
			require.NoError(t, err)
			all[fd] = true
		}
	}
	return all
}

// TestOwn: of a connection, and of a listener, every descriptor is told of, so that a forked child can close it. One that it
// kept would hide the end of its parent from the peer.
func TestOwn(t *testing.T) {
	var mu sync.Mutex
	told := map[int]bool{}
	before := sockets(t)
	d := newDevice(t, func(c *uverbs.Config) {
		c.Own = func(fd int) {
			mu.Lock()
			defer mu.Unlock()
			told[fd] = true
		}
	})
	client, server := d.program(), d.program()
	c, _, _, _ := pair(client, server)
	mu.Lock()
	for fd := range sockets(t) {
		assert.True(t, before[fd] || told[fd], fmt.Sprint("descriptor ", fd))
	}
	mu.Unlock()
	must(client, uabi.CMDisconnect, &uabi.Disconnect{ID: c}, 0)
	client.expect(uabi.CMEventDisconnected)
}
