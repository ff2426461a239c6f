package fault

import (
	"bytes"
	"io"
	"net"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/lab/internal/interpose"
	"github.com/softrnic/softrnic/mpa"
)

// TestSmallFPDUsAreBounded: what it takes to hold an FPDU back counts too. A peer that sends the smallest ones, of which 4 MiB are
// 524,288, or ones of which nothing is left, has this side hold no more than that.
func TestSmallFPDUsAreBounded(t *testing.T) {
	f := mpa.NewFramer(false, false)
	small := bytes.Repeat(f.AppendFPDU(nil, nil), 4096) // ULPDUs of no octet
	for name, plan := range map[string]string{
		"held back": "segment 1: delay 1h",
		"dropped":   "segment 1: delay 1h\nsegment every 2: drop\nsegment every 3: drop",
		"cut":       "segment 1: delay 1h\noctet every 2: split",
	} {
		for _, dir := range []string{"in", "out"} {
			t.Run(name+" "+dir, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					in, err := New(MustParse(plan), nil)
					require.NoError(t, err)
					here, there := net.Pipe()
					s := mpa.Stream{Conn: here}
					require.NoError(t, inside{in}.Stream(1, &s, 0))
					from, to := s.Conn, there
					if dir == "in" {
						from, to = there, s.Conn
					}
					before := heap()
					go func() { _, _ = io.Copy(io.Discard, to) }()
					go func() {
						for n := 0; n < 64<<20; n += len(small) {
							if _, err := from.Write(small); err != nil {
								return
							}
						}
					}()
					synctest.Wait()
					assert.LessOrEqual(t, int(heap())-int(before), 2*interpose.MaxHeld)
					assert.NoError(t, s.Conn.(interface{ SetLinger(int) error }).SetLinger(0)) // else what is late is still delivered
					assert.NoError(t, s.Conn.Close())
					assert.NoError(t, there.Close())
				})
			})
		}
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
