package nvmeof

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
)

// pattern is n octets that tell seed and place.
func pattern(seed, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(seed*131 + i/7 + i)
	}
	return b
}

// Writes that no Host does: with FUA, of zeroes, by Dataset Management; and the keys that an answer invalidates, or not.
func TestOtherWrites(t *testing.T) {
	for name, c := range map[string]Config{"invalidating": {}, "plain sends": {NoInvalidate: true}} {
		t.Run(name, func(t *testing.T) {
			disk := &recorder{Disk: Memory(1 << 20)}
			addr, _ := serve(t, c, subsystem(t, disk))
			q := associate(t, addr, 1).io[0]
			want := pattern(1, 4096)
			got := q.give(q.entry(cmdWrite, 1).onBlocks(8, 8), want)
			require.Equal(t, Success, got.status)
			require.Equal(t, !c.NoInvalidate, got.withInv)
			require.Zero(t, disk.syncs)
			fua := q.entry(cmdWrite, 1).onBlocks(0, 1)
			le.PutUint16(fua[50:], rwFUA)
			require.Equal(t, Success, q.do(inline(fua, blockSize), want[:blockSize]).status)
			require.Equal(t, 1, disk.syncs)
			require.Equal(t, Success, q.do(q.entry(cmdWriteZeroes, 1).onBlocks(8, 4)).status)
			require.Equal(t, Success, q.give(q.deallocate([2]uint64{12, 2})).status)
			clear(want[:6*blockSize])
			b := make([]byte, len(want))
			_, err := disk.ReadAt(b, 8*blockSize)
			require.NoError(t, err)
			require.True(t, bytes.Equal(want, b))
		})
	}
}

// A file has what was flushed, and grows no hole in its size by deallocation.
func TestFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "disk.img")
	require.NoError(t, os.WriteFile(name, pattern(9, 1<<20), 0o600))
	d, err := OpenFile(name)
	require.NoError(t, err)
	defer d.Close()
	addr, _ := serve(t, Config{}, subsystem(t, d))
	q := associate(t, addr, 1).io[0]
	want := pattern(9, 1<<20)
	copy(want[5*blockSize:], pattern(3, 8192))
	require.Equal(t, Success, q.give(q.entry(cmdWrite, 1).onBlocks(5, 16), pattern(3, 8192)).status)
	zero := q.entry(cmdWriteZeroes, 1).onBlocks(100, 9)
	le.PutUint16(zero[50:], rwDeall)
	clear(want[100*blockSize : 109*blockSize])
	require.Equal(t, Success, q.do(zero).status)
	require.Equal(t, Success, q.do(q.entry(cmdWriteZeroes, 1).onBlocks(200, 3)).status)
	clear(want[200*blockSize : 203*blockSize])
	require.Equal(t, Success, q.do(q.entry(cmdFlush, 0xffffffff)).status)
	got, err := os.ReadFile(name)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, got))
}

// Statuses of the specification for what is wrong, on a queue that goes on.
func TestBadCommands(t *testing.T) {
	addr, _ := serve(t, Config{}, subsystem(t, Memory(1<<20)))
	a := associate(t, addr, 1)
	q := a.io[0]
	for name, tt := range map[string]struct {
		want   Status
		change func() (command, []byte)
	}{
		"opcode":              {InvalidOpcode, func() (command, []byte) { return q.entry(0x7e, 1), nil }},
		"fctype":              {InvalidOpcode, func() (command, []byte) { return q.entry(fabricsCommand, 0x33), nil }},
		"Connect again":       {SequenceError, func() (command, []byte) { return q.entry(fabricsCommand, typeConnect), nil }},
		"property, I/O queue": {InvalidField, func() (command, []byte) { return q.entry(fabricsCommand, typePropertyGet), nil }},
		"namespace":           {InvalidNamespace, func() (command, []byte) { return q.entry(cmdRead, 7).onBlocks(0, 1), nil }},
		"fused": {InvalidField, func() (command, []byte) {
			c := q.entry(cmdFlush, 1)
			c[1] = 0x41
			return c, nil
		}},
		"PRP": {InvalidField, func() (command, []byte) {
			c := q.entry(cmdFlush, 1)
			c[1] = 0
			return c, nil
		}},
		"SGL type": {SGLInvalidType, func() (command, []byte) {
			c := q.entry(cmdFlush, 1)
			c[39] = 0x30
			return c, nil
		}},
		"SGL offset": {SGLInvalidOffset, func() (command, []byte) {
			c := inline(q.entry(cmdWrite, 1).onBlocks(0, 1), blockSize)
			le.PutUint64(c[24:], 1<<63)
			return c, make([]byte, blockSize)
		}},
		"in-capsule data beyond the capsule": {SGLInvalidLength, func() (command, []byte) {
			return inline(q.entry(cmdWrite, 1).onBlocks(0, 2), 2*blockSize), make([]byte, blockSize)
		}},
		"length of write": {SGLInvalidLength, func() (command, []byte) { return keyed(q.entry(cmdWrite, 1).onBlocks(0, 2), q.data, blockSize), nil }},
		"length of read":  {SGLInvalidLength, func() (command, []byte) { return keyed(q.entry(cmdRead, 1).onBlocks(0, 1), q.data, 2*blockSize), nil }},
		"length of flush": {SGLInvalidLength, func() (command, []byte) { return keyed(q.entry(cmdFlush, 1), q.data, blockSize), nil }},
		"read into the capsule": {SGLInvalidType, func() (command, []byte) {
			return inline(q.entry(cmdRead, 1).onBlocks(0, 1), blockSize), make([]byte, blockSize)
		}},
		"beyond mdts":      {InvalidField, func() (command, []byte) { return keyed(q.entry(cmdRead, 1).onBlocks(0, 1), q.data, maxTransfer+1), nil }},
		"beyond the end":   {LBARange, func() (command, []byte) { return keyed(q.entry(cmdRead, 1).onBlocks(2047, 2), q.data, 1024), nil }},
		"beyond all ends":  {LBARange, func() (command, []byte) { return keyed(q.entry(cmdRead, 1).onBlocks(1<<63, 1), q.data, 512), nil }},
		"short DSM ranges": {SGLInvalidLength, func() (command, []byte) { return keyed(q.entry(cmdDSM, 1), q.data, 8), nil }},
	} {
		c, data := tt.change()
		got := q.do(c, data)
		require.Equal(t, tt.want|DNR, got.status, name)
		if got.withInv {
			q.renew()
		}
	}
	require.Equal(t, Success, q.do(q.entry(cmdFlush, 1)).status)
	require.Equal(t, InvalidOpcode|DNR, a.admin.do(a.admin.entry(0x55, 0)).status)
}

// Connects that are refused: where the wrong field is.
func TestConnectRefused(t *testing.T) {
	addr, _ := serve(t, Config{}, subsystem(t, Memory(1<<20)))
	a := associate(t, addr, 1)
	for name, tt := range map[string]struct {
		qid    uint16
		want   Status
		result uint64
		change func(command, []byte)
	}{
		"recfmt":          {0, ConnectFormat, 0, func(c command, _ []byte) { c[40] = 1 }},
		"qid":             {0, ConnectParameter, 42, func(c command, _ []byte) { c[42] = 1 }},
		"sqsize 0":        {0, ConnectParameter, 44, func(c command, _ []byte) { c[44] = 0 }},
		"sqsize":          {0, ConnectParameter, 44, func(c command, _ []byte) { c[44] = 200 }},
		"cntlid":          {0, ConnectParameter, 16 | 1<<16, func(_ command, b []byte) { b[16] = 9 }},
		"subsystem":       {0, ConnectParameter, 256 | 1<<16, func(_ command, b []byte) { b[256] = 'x' }},
		"host":            {0, ConnectParameter, 512 | 1<<16, func(_ command, b []byte) { b[512] = 0 }},
		"no controller":   {1, ConnectParameter, 16 | 1<<16, func(_ command, b []byte) { b[17] = 0x77 }},
		"another's":       {1, ConnectParameter, 16 | 1<<16, func(_ command, b []byte) { b[0]++ }},
		"queue not given": {2, ConnectParameter, 42, func(command, []byte) {}},
		"queue in use":    {1, SequenceError, 0, func(command, []byte) {}},
	} {
		q := dialQueue(t, addr, tt.qid, 31)
		id := a.id
		if tt.qid == 0 {
			id = 0xffff
		}
		require.Equal(t, SequenceError|DNR, q.do(q.entry(cmdFlush, 1)).status, "before Connect")
		got := q.connect(id, 31, 0, tt.change)
		require.Equal(t, tt.want|DNR, got.status, name)
		require.Equal(t, tt.result, got.result, name)
	}
}

func TestPrivateDataRefused(t *testing.T) {
	addr, _ := serve(t, Config{Queues: 4, Depth: 64}, subsystem(t, Memory(1<<20)))
	for want, b := range map[uint16][]byte{
		rejectInvalidLen:     make([]byte, 31),
		rejectInvalidRecfmt:  private(1, 0, 32, 31),
		rejectInvalidQID:     private(0, 5, 32, 31),
		rejectInvalidHSQSize: private(0, 0, 33, 32),
		rejectInvalidHRQSize: private(0, 0, 0, 31),
	} {
		_, err := tryQueue(t, addr, b)
		var refused *cm.RejectedError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, rejected(want), refused.PrivateData)
	}
}

// A capsule that has no command, one that is too long and a key that is not the host's end their connection, and no other.
func TestEndsOfOne(t *testing.T) {
	addr, _ := serve(t, Config{}, subsystem(t, Memory(1<<20)))
	b := associate(t, addr, 1)
	for _, bad := range []func(*rawQueue){
		func(q *rawQueue) { q.send(make([]byte, 63)) },
		func(q *rawQueue) { q.send(make([]byte, commandSize+4096+16)) },
		func(q *rawQueue) {
			c := keyed(q.entry(cmdWrite, 1).onBlocks(0, 1), q.data, blockSize)
			c[35] ^= 0x55
			q.send(c)
		},
		func(q *rawQueue) {
			c := keyed(q.entry(cmdRead, 1).onBlocks(0, 1), q.data, blockSize)
			le.PutUint64(c[24:], 1)
			q.send(c)
		},
	} {
		a := associate(t, addr, 1)
		bad(a.io[0])
		<-a.io[0].conn.Done()
		require.Equal(t, Success, b.io[0].do(b.io[0].entry(cmdFlush, 1)).status)
		require.Equal(t, Success, a.admin.do(a.admin.entry(adminKeepAlive, 0)).status)
	}
}

// A command id that is in use is refused; the command that has it goes on.
func TestCommandIDsReused(t *testing.T) {
	addr, _ := serve(t, Config{}, subsystem(t, Memory(1<<20)))
	a := associate(t, addr, 1)
	event := a.admin.entry(adminAsyncEvent, 0)
	a.admin.send(event)
	require.Equal(t, CIDConflict|DNR, a.admin.do(event).status)
	require.Equal(t, Success, a.admin.do(a.admin.entry(adminKeepAlive, 0)).status)
	abort := a.admin.entry(adminAbort, 0)
	le.PutUint16(abort[42:], event.cid())
	for i := range 200 { // an Abort finds what was sent before it, however far that is
		if i > 0 {
			a.admin.send(event)
		}
		a.admin.send(abort)
		for range 2 {
			one := a.admin.receive()
			if one.cid == abort.cid() {
				require.Zero(t, one.result)
			} else {
				require.Equal(t, Aborted, one.status)
			}
		}
	}
	require.EqualValues(t, 1, a.admin.do(abort).result, "nothing to abort")
}

// A namespace that comes is told to the host that has asked for it, once, until it reads the log.
func TestNamespaceNotice(t *testing.T) {
	s := subsystem(t, Memory(1<<20))
	addr, _ := serve(t, Config{}, s)
	q := associate(t, addr, 1).admin
	set := q.entry(adminSetFeatures, 0)
	set[40] = featAsyncEvent
	le.PutUint32(set[44:], eventNSNotice)
	require.Equal(t, Success, q.do(set).status)
	event := q.entry(adminAsyncEvent, 0)
	q.send(event)
	require.NoError(t, s.Set(5, Memory(2<<20)))
	got := q.receive()
	require.Equal(t, event.cid(), got.cid)
	require.EqualValues(t, nsAttrChanged, got.result)
	log := q.entry(adminGetLogPage, 0xffffffff)
	log[40] = logChangedNS
	le.PutUint16(log[42:], 4096/4-1)
	b, got := q.fetch(log, 4096)
	require.Equal(t, Success, got.status)
	require.EqualValues(t, 5, le.Uint32(b))
	list := q.entry(adminIdentify, 0)
	list[40] = idActiveList
	b, _ = q.fetch(list, identifySize)
	require.Equal(t, []uint32{1, 5, 0}, []uint32{le.Uint32(b), le.Uint32(b[4:]), le.Uint32(b[8:])})
	ns := q.entry(adminIdentify, 5)
	b, _ = q.fetch(ns, identifySize)
	require.EqualValues(t, 2<<20/blockSize, le.Uint64(b))
	for range aerl + 1 {
		q.send(q.entry(adminAsyncEvent, 0))
	}
	// Each is there before the next: they are held in any order, and one of five is too many.
	q.send(q.entry(adminAsyncEvent, 0))
	require.Equal(t, TooManyEvents|DNR, q.receive().status)
}

// A discovery controller is one that says so; what its log says is for TestDiscover.
func TestDiscovery(t *testing.T) {
	addr, _ := serve(t, Config{}, subsystem(t, Memory(1<<20)))
	q := dialQueue(t, addr, 0, 31)
	require.Equal(t, Success, q.connect(0xffff, 31, 0, func(_ command, b []byte) {
		clear(b[256:512])
		copy(b[256:], DiscoveryNQN)
	}).status)
	require.Equal(t, SequenceError|DNR, q.do(q.entry(adminKeepAlive, 0)).status, "not enabled")
	require.Equal(t, Success, q.setProperty(regCC, 0x00460001).status)
	id := q.entry(adminIdentify, 0)
	id[40] = idController
	b, _ := q.fetch(id, identifySize)
	require.EqualValues(t, 2, b[111])
	require.Equal(t, Success, q.setProperty(regCC, 0x00464001).status)
	require.EqualValues(t, 2, q.property(regCSTS, false).result>>2&3)
}

// A host that says nothing for longer than it promised loses all its queues, and so does one whose admin queue goes.
func TestEndsOfControllers(t *testing.T) {
	addr, target := serve(t, Config{}, subsystem(t, Memory(1<<20)))
	a := associate(t, addr, 2)
	kato := a.admin.entry(adminSetFeatures, 0)
	kato[40] = featKATO
	le.PutUint32(kato[44:], 50)
	a.admin.send(kato)
	<-a.admin.conn.Done()
	<-a.io[0].conn.Done()
	<-a.io[1].conn.Done()
	a = associate(t, addr, 2)
	require.NoError(t, a.admin.conn.Abort())
	<-a.io[0].conn.Done()
	<-a.io[1].conn.Done()
	require.Nil(t, target.controller(a.id))
	require.NotNil(t, associate(t, addr, 2))
}

// Places for queues are given out until there are none; a queue that ends gives its own back.
func TestPlaces(t *testing.T) {
	addr, target := serve(t, Config{Connections: 1}, subsystem(t, Memory(1<<20)))
	first := dialQueue(t, addr, 0, 31)
	require.Equal(t, Success, first.connect(0xffff, 31, 0, nil).status)
	_, err := tryQueue(t, addr, private(0, 0, 32, 31))
	var refused *cm.RejectedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, rejected(rejectNoResources), refused.PrivateData)
	require.NoError(t, first.conn.Abort())
	require.Eventually(t, func() bool {
		target.mu.Lock()
		defer target.mu.Unlock()
		return target.places.held() == 0
	}, time.Minute, time.Millisecond)
	dialQueue(t, addr, 0, 31)
}

// Who never sends a Connect does not keep his place.
func TestSilentHost(t *testing.T) {
	addr, _ := serve(t, Config{ConnectTimeout: time.Second}, subsystem(t, Memory(1<<20)))
	<-dialQueue(t, addr, 0, 31).conn.Done()
}

// The time for a Connect ends no queue that has sent one.
func TestConnectedStays(t *testing.T) {
	addr, target := serve(t, Config{}, subsystem(t, Memory(1<<20)))
	a := associate(t, addr, 1)
	c := target.controller(a.id)
	c.mu.Lock()
	q := c.queues[1]
	c.mu.Unlock()
	q.expire(nil)
	require.NoError(t, q.gone.Err())
	require.Equal(t, Success, a.io[0].do(a.io[0].entry(cmdFlush, 1)).status)
}

func FuzzCapsule(f *testing.F) {
	good := make([]byte, commandSize+512)
	good[0], good[1], good[39] = cmdWrite, 0x40, 1
	f.Add(good)
	good[39] = 0x4f
	f.Add(good)
	f.Fuzz(func(t *testing.T, b []byte) {
		c := Config{Queues: 4, Depth: 64}
		if h, reject := decodeHello(b, &c); reject == 0 && (h.hsqsize == 0 || h.hsqsize >= 64 || h.qid > 4) {
			t.Fatalf("%+v", h)
		}
		if len(b) < commandSize {
			return
		}
		extra := b[commandSize:]
		s, status := decodeSGL(b, len(extra))
		switch {
		case status != Success:
		case s.inline:
			_ = extra[s.offset:][:s.length]
		case s.length > maxTransfer || s.offset+uint64(s.length) < s.offset:
			t.Fatalf("%+v", s)
		}
	})
}
