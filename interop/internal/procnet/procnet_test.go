package procnet

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestListens(t *testing.T) {
	// A line of each state from Linux 6.18's /proc/net/tcp6 and /proc/net/tcp.
	const text = `  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000000000000000000000000000:1C06 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 68721 1
   0: 0100007F:4853 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 68722 1
   2: 0100007F:1C07 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 68724 2 0 0
   1: 0100007F:1D2F 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 68723 1
`
	tcp, udp := listening["tcp"], listening["udp"]
	assert.True(t, listens(text, 7174, tcp))
	assert.True(t, listens(text, 18515, tcp))
	assert.False(t, listens(text, 7471, tcp), "it is connected, nobody listens")
	assert.False(t, listens(text, 50000, tcp), "the port of the peer")
	assert.True(t, listens(text, 7175, udp))
	assert.False(t, listens(text, 7174, udp))
}
