package nvmeof

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/test/droppedpeer"
	"github.com/softrnic/softrnic/internal/test/leakcheck"
	"github.com/softrnic/softrnic/verbs"
)

// dialHost connects a Host until the test ends.
func dialHost(t *testing.T, addr string, c HostConfig) *Host {
	t.Helper()
	h, err := Dial(t.Context(), addr, testNQN, c)
	require.NoError(t, err)
	t.Cleanup(func() { _ = h.Close() })
	return h
}

func diskOf(t *testing.T, h *Host, nsid uint32) *Namespace {
	t.Helper()
	n, err := h.Namespace(t.Context(), nsid)
	require.NoError(t, err)
	return n
}

// What is written, in the capsule or by RDMA Read, is read again by RDMA Write, whatever its length, with each way of
// the target's to receive and to answer; a Flush syncs.
func TestHostReadsAndWrites(t *testing.T) {
	for name, c := range map[string]Config{
		"own receives": {}, "shared receives": {SharedReceives: 16}, "plain sends": {NoInvalidate: true}, "nothing in capsules": {InlineData: -1}, "not a block in capsules": {InlineData: 480},
		"much in capsules": {InlineData: 64 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			disk := &recorder{Disk: Memory(8 << 20)}
			addr, _ := serve(t, c, subsystem(t, disk))
			h := dialHost(t, addr, HostConfig{Queues: 2})
			n := diskOf(t, h, 1)
			for i, octets := range []int{blockSize, 4096, 4096 + blockSize, maxTransfer, maxTransfer + blockSize, 5 << 20} {
				want, got := pattern(i, octets), make([]byte, octets)
				k, err := n.WriteAt(want, int64(i*blockSize))
				require.NoError(t, err)
				require.Equal(t, octets, k)
				k, err = n.ReadAt(got, int64(i*blockSize))
				require.NoError(t, err)
				require.Equal(t, octets, k)
				require.True(t, bytes.Equal(want, got), "%d octets", octets)
			}
			require.Zero(t, disk.syncs)
			require.NoError(t, n.Flush(t.Context()))
			require.Equal(t, 1, disk.syncs)
			require.NoError(t, h.Close())
			require.NoError(t, h.Close())
		})
	}
}

// What the controller and its namespaces are.
func TestHostIdentifies(t *testing.T) {
	s := subsystem(t, Memory(1<<20), Memory(3<<20+100))
	require.NoError(t, s.Set(700, Memory(1<<30)))
	addr, _ := serve(t, Config{Queues: 3, Depth: 20}, s)
	h := dialHost(t, addr, HostConfig{Queues: 5, Depth: 100})
	want := Controller{
		ID: 1, Subsystem: testNQN, Serial: "softrnic", Model: "softrnic NVMe over Fabrics target", Firmware: verbs.Version().Release[:min(len(verbs.Version().Release), 8)],
		Version: "1.3", Queues: 3, Depth: 19, MaxTransfer: maxTransfer, WriteCache: true, capsule: commandSize + 4096,
	}
	require.Equal(t, want, h.Controller())
	all, err := h.Namespaces(t.Context())
	require.NoError(t, err)
	var sizes []int64
	var ids []uint32
	for _, n := range all {
		sizes, ids = append(sizes, n.Size()), append(ids, n.ID())
		require.Equal(t, s.id(n.ID()), first(n.NGUID()))
		require.Equal(t, blockSize, n.BlockSize())
	}
	require.Equal(t, []int64{1 << 20, 3 << 20, 1 << 30}, sizes)
	require.Equal(t, []uint32{1, 2, 700}, ids)
	_, err = h.Namespace(t.Context(), 3)
	require.ErrorContains(t, err, "namespace 3: it is not there")
	_, err = h.Namespace(t.Context(), 0)
	require.ErrorIs(t, err, InvalidNamespace)
}

func first(b [16]byte) []byte { return b[:] }

// A thousand namespaces do not fit on one page with room to spare: the list is asked for again.
func TestHostListsMany(t *testing.T) {
	s := subsystem(t)
	for i := range maxNamespaces {
		require.NoError(t, s.Set(uint32(i+1), Memory(blockSize)))
	}
	addr, _ := serve(t, Config{}, s)
	all, err := dialHost(t, addr, HostConfig{}).Namespaces(t.Context())
	require.NoError(t, err)
	require.Len(t, all, maxNamespaces)
}

// ReadAt and WriteAt are those of io: what does not fit is refused before anything is sent.
func TestHostBounds(t *testing.T) {
	addr, _ := serve(t, Config{}, subsystem(t, Memory(1<<20)))
	n := diskOf(t, dialHost(t, addr, HostConfig{}), 1)
	block := make([]byte, blockSize)
	for _, at := range []struct {
		n   int
		off int64
	}{{blockSize, 1}, {blockSize, -blockSize}, {1, 0}, {blockSize + 1, blockSize}} {
		_, err := n.ReadAt(make([]byte, at.n), at.off)
		require.ErrorIs(t, err, ErrAlignment)
		_, err = n.WriteAt(make([]byte, at.n), at.off)
		require.ErrorIs(t, err, ErrAlignment)
	}
	_, err := n.WriteAt(pattern(1, blockSize), n.Size()-blockSize)
	require.NoError(t, err)
	k, err := n.ReadAt(make([]byte, 4*blockSize), n.Size()-blockSize)
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, blockSize, k)
	k, err = n.ReadAt(block, n.Size())
	require.ErrorIs(t, err, io.EOF)
	require.Zero(t, k)
	k, err = n.ReadAt(nil, 0)
	require.NoError(t, err)
	require.Zero(t, k)
	k, err = n.WriteAt(make([]byte, 2*blockSize), n.Size()-blockSize)
	require.ErrorIs(t, err, LBARange)
	require.ErrorContains(t, err, "nothing was sent")
	require.Zero(t, k)
	_, err = n.WriteAt(block, n.Size())
	require.ErrorIs(t, err, LBARange)
	got, err := io.ReadAll(io.NewSectionReader(sectors{n}, 0, n.Size()))
	require.NoError(t, err)
	require.True(t, bytes.Equal(pattern(1, blockSize), got[len(got)-blockSize:]))
}

// sectors lets io.ReadAll, whose buffers are of any length, read a namespace.
type sectors struct{ *Namespace }

func (s sectors) ReadAt(p []byte, off int64) (int, error) {
	from := off / blockSize * blockSize
	b := make([]byte, (int(off-from)+len(p)+blockSize-1)/blockSize*blockSize)
	n, err := s.Namespace.ReadAt(b, from)
	if n = min(max(n-int(off-from), 0), len(p)); n == len(p) {
		err = nil
	}
	copy(p, b[off-from:][:n])
	return n, err
}

// A namespace that has shrunk meanwhile answers with a status that has its name, and the association goes on.
func TestHostStatus(t *testing.T) {
	s := subsystem(t, Memory(1<<20))
	addr, _ := serve(t, Config{}, s)
	h := dialHost(t, addr, HostConfig{})
	n := diskOf(t, h, 1)
	require.NoError(t, s.Set(1, Memory(blockSize)))
	_, err := n.ReadAt(make([]byte, blockSize), blockSize)
	require.ErrorIs(t, err, LBARange)
	require.EqualError(t, err, "nvmeof: Read of 512 octets at 512: the target answers Read of namespace 1 with NVMe status 0x080 (blocks beyond the end of the namespace), do not retry")
	require.NoError(t, s.Set(1, nil))
	require.ErrorIs(t, n.Flush(t.Context()), InvalidNamespace)
	require.NoError(t, h.Err())
}

// Calls side by side, more than the queues have places, on namespaces of their own, of several hosts at once: each sees
// its own data only.
func TestHostsSideBySide(t *testing.T) {
	addr, _ := serve(t, Config{SharedReceives: 4}, subsystem(t, Memory(4<<20), Memory(4<<20)))
	var all sync.WaitGroup
	for host := range 3 {
		h := dialHost(t, addr, HostConfig{Queues: 2, Depth: 3})
		for nsid := range uint32(2) {
			n := diskOf(t, h, nsid+1)
			for part := range 8 {
				all.Go(func() {
					at := int64(host*8+part) * 64 << 10
					r := rand.New(rand.NewPCG(uint64(host), uint64(part)))
					for round := range 10 {
						want := pattern(host*1000+part*100+round, (1+r.IntN(100))*blockSize)
						got := make([]byte, len(want))
						_, err := n.WriteAt(want, at)
						if _, err2 := n.ReadAt(got, at); err != nil || err2 != nil || !bytes.Equal(want, got) {
							t.Errorf("read other data than written: %v, %v", err, err2)
							return
						}
					}
				})
			}
		}
	}
	all.Wait()
}

// As many commands are on their way at once as the queues have places, and all queues have their part.
func TestHostDepth(t *testing.T) {
	d := slow{watch(Memory(1 << 20))}
	addr, target := serve(t, Config{}, subsystem(t, d))
	t.Cleanup(d.open)
	h := dialHost(t, addr, HostConfig{Queues: 2, Depth: 4})
	n := diskOf(t, h, 1)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			_, err := n.ReadAt(make([]byte, blockSize), 0)
			assert.NoError(t, err)
		})
	}
	c := target.controller(h.Controller().ID)
	require.Eventually(t, func() bool { return c.under() == 8 }, time.Minute, time.Millisecond)
	for range 8 {
		<-d.entered
	}
	require.Empty(t, d.entered)
	d.open()
	all.Wait()
}

// A call that its program gives up leaves its place in use until the target has answered, and the others go on.
func TestHostCancels(t *testing.T) {
	d := slow{watch(Memory(1 << 20))}
	addr, _ := serve(t, Config{}, subsystem(t, d, Memory(1<<20)))
	t.Cleanup(d.open)
	h := dialHost(t, addr, HostConfig{Depth: 2})
	n, other := diskOf(t, h, 1), diskOf(t, h, 2)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- n.Flush(ctx) }()
	<-d.entered
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	for range 5 {
		require.NoError(t, other.Flush(t.Context()))
	}
	require.Len(t, h.ready, 1)
	d.open()
	require.Eventually(t, func() bool { return len(h.ready) == 2 }, time.Minute, time.Millisecond)
	require.NoError(t, h.Close())
}

// Keep-alives keep a host that does nothing for longer than it promised; without them the target ends it.
func TestHostKeepsAlive(t *testing.T) {
	addr, target := serve(t, Config{}, subsystem(t, Memory(1<<20)))
	h := dialHost(t, addr, HostConfig{KeepAlive: 1500 * time.Millisecond})
	c := target.controller(h.Controller().ID)
	heard := func() time.Time {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.last
	}
	begin := heard()
	require.Eventually(t, func() bool { return heard().Sub(begin) > 3*time.Second || h.Err() != nil }, time.Minute, time.Millisecond)
	require.NoError(t, h.Err())
	c.mu.Lock()
	kato := c.kato
	c.mu.Unlock()
	require.Equal(t, 1500*time.Millisecond, kato)
	never := dialHost(t, addr, HostConfig{KeepAlive: -1})
	require.Nil(t, target.controller(never.Controller().ID).expiry)
}

// The target that goes while calls are under way ends them all; the log says it once, and Close returns.
func TestHostLosesItsTarget(t *testing.T) {
	d := slow{watch(Memory(1 << 20))}
	target, err := New(Config{}, subsystem(t, d))
	require.NoError(t, err)
	l, err := cm.Listen("127.0.0.1:0", cm.ListenConfig{})
	require.NoError(t, err)
	ctx, kill := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- target.Serve(ctx, l) }()
	said := make(chan string, 16)
	h := dialHost(t, l.Addr().String(), HostConfig{Queues: 2, Logger: slog.New(lines(said))})
	n := diskOf(t, h, 1)
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			var err error
			if i%2 == 0 {
				_, err = n.ReadAt(make([]byte, blockSize), 0)
			} else {
				_, err = n.WriteAt(make([]byte, 64<<10), 0)
			}
			assert.ErrorContains(t, err, "cm: connection")
		})
	}
	for range 10 {
		<-d.entered
	}
	kill()
	all.Wait()
	d.open()
	require.NoError(t, <-served)
	require.NoError(t, target.Close())
	<-h.Done()
	require.ErrorIs(t, n.Flush(t.Context()), h.Err())
	require.NoError(t, h.Close())
	require.Error(t, h.Err())
	require.True(t, strings.HasPrefix(<-said, "nvmeof: an association has ended"))
	require.Empty(t, said)
}

// Close waits for calls under way; later ones say that it is closed. The target keeps nothing of it.
func TestHostCloseUnderTraffic(t *testing.T) {
	addr, target := serve(t, Config{}, subsystem(t, Memory(1<<20)))
	for range 10 {
		h := dialHost(t, addr, HostConfig{Queues: 2, Depth: 4})
		n := diskOf(t, h, 1)
		var done atomic.Int64
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				for {
					if _, err := n.WriteAt(make([]byte, 8192), 0); err != nil {
						assert.ErrorIs(t, err, net.ErrClosed)
						return
					}
					done.Add(1)
				}
			})
		}
		require.Eventually(t, func() bool { return done.Load() > 20 }, time.Minute, time.Microsecond)
		require.NoError(t, h.Close())
		all.Wait()
		require.ErrorIs(t, n.Flush(t.Context()), net.ErrClosed)
		require.ErrorIs(t, h.Err(), net.ErrClosed)
		require.Eventually(t, func() bool { return target.associations() == 0 }, time.Minute, time.Millisecond)
	}
}

// A host that is closed leaves nothing, here or at the target; neither does one that did not come to be.
func TestHostLeavesNothing(t *testing.T) {
	addr, target := serve(t, Config{}, subsystem(t, Memory(1<<20)))
	nothing := func() {
		_, err := Dial(t.Context(), addr, "nqn.2026-01.org.softrnic:none", HostConfig{})
		require.ErrorIs(t, err, ConnectParameter)
		require.ErrorContains(t, err, "it has no subsystem of that NQN")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = Dial(ctx, addr, testNQN, HostConfig{})
		require.ErrorIs(t, err, context.Canceled)
		require.NoError(t, use(addr, HostConfig{Queues: 3}))
		_, err = Discover(t.Context(), addr, HostConfig{})
		require.NoError(t, err)
	}
	nothing()
	spare := func() map[string]int { // what the target keeps for the next data is no leak
		target.buffers.mu.Lock()
		defer target.buffers.mu.Unlock()
		n := 0
		for _, free := range target.buffers.free {
			n += len(free)
		}
		return map[string]int{"regions": -n}
	}
	book := leakcheck.Open(t, append(target.counts(), spare)...)
	for range 20 {
		nothing()
	}
	book.Settle()
}

// No call leaves a region with the host's RNIC, however it ends.
func TestHostLeavesNoRegion(t *testing.T) {
	addr, _ := serve(t, Config{}, subsystem(t, Memory(1<<20)))
	h := dialHost(t, addr, HostConfig{})
	n := diskOf(t, h, 1)
	before := droppedpeer.RNIC(h.nic)()
	for range 100 {
		_, err := n.WriteAt(make([]byte, 64<<10), 0)
		require.NoError(t, err)
		_, err = n.ReadAt(make([]byte, blockSize), 0)
		require.NoError(t, err)
		_, err = h.Namespace(t.Context(), 9)
		require.Error(t, err)
	}
	require.Equal(t, before, droppedpeer.RNIC(h.nic)())
}

// A subsystem that is for other hosts, and what no HostConfig may say.
func TestHostRefused(t *testing.T) {
	s, err := NewSubsystem(testNQN, []Disk{Memory(1 << 20)}, testHost)
	require.NoError(t, err)
	addr, _ := serve(t, Config{}, s)
	_, err = Dial(t.Context(), addr, testNQN, HostConfig{})
	require.ErrorIs(t, err, ConnectHost)
	dialHost(t, addr, HostConfig{HostNQN: testHost})
	for says, c := range map[string]HostConfig{
		"want 1 to 1024": {Queues: 1025}, "want 1 to 1024, 1 to 1023": {Depth: 1024}, "223 at most": {HostNQN: strings.Repeat("n", 224)},
		"negative timeout": {CommandTimeout: -1}, "want 1 ms to": {KeepAlive: 1},
	} {
		_, err := Dial(t.Context(), addr, testNQN, c)
		require.ErrorContains(t, err, says)
	}
	for _, nqn := range []string{"", DiscoveryNQN, strings.Repeat("n", 224)} {
		_, err := Dial(t.Context(), addr, nqn, HostConfig{})
		require.ErrorContains(t, err, "Discover")
	}
}

// The discovery log names all subsystems, at the address that the host came to, or the one that the target advertises.
func TestDiscover(t *testing.T) {
	more, err := NewSubsystem("nqn.2026-01.org.softrnic:more", nil)
	require.NoError(t, err)
	addr, _ := serve(t, Config{}, subsystem(t, Memory(1<<20)), more)
	entry := func(nqn, address string) DiscoveryEntry {
		return DiscoveryEntry{NQN: nqn, Address: address, Transport: "rdma"}
	}
	got, err := Discover(t.Context(), addr, HostConfig{})
	require.NoError(t, err)
	require.Equal(t, []DiscoveryEntry{entry("nqn.2026-01.org.softrnic:more", addr), entry(testNQN, addr)}, got)
	addr, _ = serve(t, Config{Advertise: "[2001:db8::1]:4420"}, subsystem(t, Memory(1<<20)))
	got, err = Discover(t.Context(), addr, HostConfig{})
	require.NoError(t, err)
	require.Equal(t, []DiscoveryEntry{entry(testNQN, "[2001:db8::1]:4420")}, got)
}
