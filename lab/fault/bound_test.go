package fault

import (
	"bytes"
	"io"
	"net"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/lab/internal/interpose"
	"github.com/softrnic/softrnic/mpa"
)

// counted counts what is written to it.
type counted struct {
	net.Conn
	n int
}

// fill writes FPDUs of 16 KiB until that fails.
func (c *counted) fill() {
	f := mpa.NewFramer(false, false)
	b := bytes.Repeat(f.AppendFPDU(nil, make([]byte, 16<<10)), 2)
	for {
		n, err := c.Write(b)
		c.n += n
		if err != nil {
			return
		}
	}
}

// TestHeldBackIsBounded: what is delayed for an hour holds up its sender after 4 MiB, in each direction.
func TestHeldBackIsBounded(t *testing.T) {
	for name, plan := range map[string]string{"out": "segment 2 out: delay 1h", "in": "segment 2 in: delay 1h"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in, err := New(MustParse(plan), nil)
				require.NoError(t, err)
				here, there := net.Pipe()
				s := mpa.Stream{Conn: here}
				require.NoError(t, inside{in}.Stream(1, &s, 0))
				from, to := s.Conn, there
				if name == "in" {
					from, to = there, s.Conn
				}
				w := counted{Conn: from}
				go func() { _, _ = io.Copy(io.Discard, to) }()
				go func() {
					_, _ = from.Write(sends(false, false, 3))
					w.fill()
				}()
				synctest.Wait()
				assert.Greater(t, w.n, interpose.MaxHeld/2)
				assert.LessOrEqual(t, w.n, interpose.MaxHeld+1<<18)
				assert.NoError(t, s.Conn.(interface{ SetLinger(int) error }).SetLinger(0)) // else what is late is still delivered
				assert.NoError(t, s.Conn.Close())
				assert.NoError(t, there.Close())
			})
		})
	}
}

// TestEarlyIsBounded: an Initiator that sends on and on without a Reply is no iWARP, and is passed on.
func TestEarlyIsBounded(t *testing.T) {
	in, err := New(MustParse("segment 2: drop"), nil)
	require.NoError(t, err)
	st := in.open(0)
	req, err := (&mpa.Startup{Rev: 1, CRC: true}).Append(nil)
	require.NoError(t, err)
	out := 0
	feed := func(f *flow, b []byte) {
		for _, p := range f.feed(b) {
			out += len(p.Octets)
		}
	}
	feed(st.flows[1], req)
	assert.Equal(t, len(req), out)
	for range interpose.MaxEarly / 1024 {
		feed(st.flows[1], make([]byte, 1024))
	}
	assert.Equal(t, len(req), out, "it waits for the Reply")
	feed(st.flows[1], make([]byte, 1024))
	assert.Equal(t, len(req)+interpose.MaxEarly+1024, out)
	assert.Empty(t, st.flows[1].Rest())
}
