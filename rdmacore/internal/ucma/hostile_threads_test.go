//go:build linux && (amd64 || arm64)

package ucma_test

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/ucma"
	"github.com/softrnic/softrnic/rdmacore/internal/uverbs"
)

// thread is the program with memory of its own to write commands to.
func (p *program) thread() *program {
	o := *p
	var err error
	o.arena, err = unix.Mmap(-1, 0, 256<<10, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	require.NoError(p.t, err)
	p.t.Cleanup(func() { require.NoError(p.t, unix.Munmap(o.arena)) })
	return &o
}

// TestDestroyedAtOnce: of six threads that destroy the same identifier at once, one does, whatever that is doing and
// whatever two others ask of it.
func TestDestroyedAtOnce(t *testing.T) {
	d := newDevice(t)
	server := d.program()
	_, at := server.listen(1, netip.AddrPortFrom(loopback, 0))
	client := d.program()
	var threads []*program
	for range 8 {
		threads = append(threads, client.thread())
	}
	for name, begin := range map[string]func(id uint32){
		"idle":       func(uint32) {},
		"bound":      func(id uint32) { require.NoError(t, client.bind(id, netip.AddrPortFrom(loopback, 0))) },
		"resolved":   func(id uint32) { client.resolve(id, at) },
		"connecting": func(id uint32) { client.resolve(id, at); require.NoError(t, client.connect(id, client.qp(), "")) },
		"listening": func(id uint32) {
			require.NoError(t, client.bind(id, netip.AddrPortFrom(loopback, 0)))
			must(client, uabi.CMListen, &uabi.Listen{ID: id, Backlog: 1}, 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 20 {
				id := client.create(2)
				begin(id)
				var destroyed atomic.Int32
				start := make(chan struct{})
				var all sync.WaitGroup
				for n, p := range threads {
					all.Go(func() {
						<-start
						switch n {
						case 0:
							_ = do(p, uabi.CMDisconnect, &uabi.Disconnect{ID: id}, 0)
							_ = do(p, uabi.CMMigrateID, &uabi.MigrateID{Response: p.resp(), ID: id, FD: 1 << 30}, 4)
						case 1:
							_ = do(p, uabi.CMResolveRoute, &uabi.ResolveRoute{ID: id, TimeoutMS: 1}, 0)
							_ = do(p, uabi.CMGetEvent, &uabi.GetEvent{Response: p.resp()}, 312)
						default:
							err := do(p, uabi.CMDestroyID, &uabi.DestroyID{Response: p.resp(), ID: id}, 4)
							if err == nil {
								destroyed.Add(1)
								return
							}
							var r *uverbs.Refusal
							if assert.ErrorAs(t, err, &r) {
								assert.Equal(t, syscall.ENOENT, r.Errno)
							}
						}
					})
				}
				close(start)
				all.Wait()
				require.EqualValues(t, 1, destroyed.Load())
			}
		})
	}
	client.file.Close()
	server.file.Close()
	require.Zero(t, d.ucm.IDs())
}

// TestEveryLength: every command, of every length, of zeros, of ones, and of an identifier and addresses that are there.
func TestEveryLength(t *testing.T) {
	d := newDevice(t)
	for cmd := range uint32(ucma.Commands + 2) {
		p := d.program()
		id := p.create(1)
		for n := range 420 {
			for _, fill := range []func(i int) byte{
				func(int) byte { return 0 },
				func(int) byte { return 0xff },
				func(i int) byte { return byte(p.resp() >> (8 * (i & 7))) },
				func(i int) byte {
					if i < 8 {
						return byte(p.resp() >> (8 * i))
					}
					return byte(id >> (8 * (i & 3)))
				},
			} {
				binary.NativeEndian.PutUint32(p.arena, cmd)
				binary.NativeEndian.PutUint16(p.arena[4:], uint16(n))
				binary.NativeEndian.PutUint16(p.arena[6:], 1024)
				for i := range n {
					p.arena[8+i] = fill(i)
				}
				m, err := p.file.Write(p.at(0), 8+n)
				var r *uverbs.Refusal
				if err != nil {
					require.True(t, errors.As(err, &r), "%v", err)
					require.NotEmpty(t, r.Why)
					continue
				}
				require.Equal(t, 8+n, m)
			}
		}
		p.file.Close()
	}
	require.Zero(t, d.ucm.IDs())
}
