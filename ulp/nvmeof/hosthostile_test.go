package nvmeof

import (
	"bytes"
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/leakcheck"
	"github.com/softrnic/softrnic/verbs"
)

// amid is n octets amid others, which whole has too, and which are all 0xee.
func amid(n int) (whole, b []byte) {
	whole = bytes.Repeat([]byte{0xee}, n+2*blockSize)
	return whole, whole[blockSize : blockSize+n : blockSize+n]
}

// TestHostileTargets: what a target does with a Read or a Write of four blocks that no target may. The call ends with a
// sentence that says so, memory beside its buffer stays as it was, and the host's other association goes on.
func TestHostileTargets(t *testing.T) {
	const octets = 16 << 10 // more than a capsule takes
	type attack struct {
		write bool // of WriteAt, else of ReadAt
		says  string
		by    func(q *scriptedQueue, c command)
	}
	success := func(c command) completion { return completion{cid: c.cid()} }
	for name, tt := range map[string]attack{
		"a short answer": {false, "an answer of 15 octets", func(q *scriptedQueue, _ command) { q.send(make([]byte, 15)) }},
		"no answer":      {false, "an answer of 0 octets", func(q *scriptedQueue, _ command) { q.send(nil) }},
		"a long answer":  {false, "cm: connection", func(q *scriptedQueue, _ command) { q.send(make([]byte, 17)) }},
		"another's identifier": {false, "which is not outstanding", func(q *scriptedQueue, c command) {
			q.answer(completion{cid: c.cid() ^ 1})
		}},
		"an identifier of before": {false, "which is not outstanding", func(q *scriptedQueue, c command) {
			q.answer(completion{cid: c.cid() - 1<<cidBits})
		}},
		"an identifier beyond all": {false, "which is not outstanding", func(q *scriptedQueue, _ command) { q.answer(completion{cid: 0xffff}) }},
		"an octet too many": {false, "cm: connection", func(q *scriptedQueue, c command) {
			q.write(q.at(c), make([]byte, octets+1))
		}},
		"an octet before": {false, "cm: connection", func(q *scriptedQueue, c command) {
			s := q.at(c)
			s.offset--
			q.write(s, make([]byte, 1))
		}},
		"another key": {false, "cm: connection", func(q *scriptedQueue, c command) {
			s := q.at(c)
			s.key ^= 0x5500
			q.write(s, make([]byte, 1))
		}},
		"reads what it is to write": {false, "cm: connection", func(q *scriptedQueue, c command) { q.read(q.at(c), 1) }},
		"writes what it is to read": {true, "cm: connection", func(q *scriptedQueue, c command) { q.write(q.at(c), []byte{1}) }},
		"reads too much":            {true, "cm: connection", func(q *scriptedQueue, c command) { q.read(q.at(c), octets+1) }},
		"invalidates what is not the command's": {false, "cm: connection", func(q *scriptedQueue, c command) {
			q.post(verbs.Request{Op: verbs.OpSendInvalidate, Invalidate: q.at(c).key + 1, SGL: q.out.SGL(0, completionSize)})
		}},
		"a flood": {false, "", func(q *scriptedQueue, c command) {
			for range 100 {
				q.answer(completion{cid: c.cid() ^ 1})
			}
		}},
		"silence": {false, "has not answered Read (queue 1) for 1s", func(*scriptedQueue, command) {}},
		"a reset": {true, "cm: connection", func(q *scriptedQueue, _ command) { _ = q.conn.Abort() }},
		"a close": {true, "has closed queue 1", func(q *scriptedQueue, _ command) { _ = q.conn.Close() }},
		"a failure": {false, "unrecovered read error", func(q *scriptedQueue, c command) {
			q.answer(completion{cid: c.cid(), status: UnrecoveredRead})
		}},
		"twice": {false, "", func(q *scriptedQueue, c command) {
			q.answer(success(c))
			q.answer(success(c))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			addr, _ := serve(t, Config{}, subsystem(t, Memory(1<<20)))
			other := diskOf(t, dialHost(t, addr, HostConfig{}), 1)
			s := (&scripted{instead: func(q *scriptedQueue, c command) bool {
				if q.id == 0 || c.opcode() == fabricsCommand {
					return false
				}
				tt.by(q, c)
				return true
			}}).play(t)
			h := dialHost(t, s.addr, HostConfig{KeepAlive: -1})
			n := diskOf(t, h, 1)
			if name == "silence" {
				h.config.CommandTimeout = time.Second // of nothing that is to be answered
			}
			whole, b := amid(octets)
			var err error
			if tt.write {
				_, err = n.WriteAt(b, 4096)
			} else {
				_, err = n.ReadAt(b, 4096)
			}
			if tt.says != "" {
				require.ErrorContains(t, err, tt.says)
			}
			if name == "silence" {
				require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			}
			if name == "a failure" {
				require.ErrorIs(t, err, UnrecoveredRead)
				require.NoError(t, h.Err(), "a status is no breach")
			}
			if name == "twice" {
				<-h.Done()
				require.ErrorContains(t, h.Err(), "which is not outstanding")
			}
			_ = h.Close()
			for i, v := range whole {
				if i < blockSize || i >= blockSize+octets || tt.write {
					require.EqualValues(t, 0xee, v, "octet %d", i-blockSize)
				}
			}
			require.NoError(t, other.Flush(t.Context()))
		})
	}
}

// TestWriteBehindItsAnswer: when a call has returned the target reaches its buffer no more.
func TestWriteBehindItsAnswer(t *testing.T) {
	var at sgl
	answered := make(chan struct{})
	s := (&scripted{instead: func(q *scriptedQueue, c command) bool {
		switch {
		case q.id == 0 || c.opcode() == fabricsCommand:
			return false
		case c.opcode() == cmdRead:
			at = q.at(c)
			q.answer(completion{cid: c.cid()})
		default: // the Flush behind it
			<-answered
			q.write(at, []byte{1})
		}
		return true
	}}).play(t)
	h := dialHost(t, s.addr, HostConfig{KeepAlive: -1})
	n := diskOf(t, h, 1)
	whole, b := amid(blockSize)
	_, err := n.ReadAt(b, 0)
	require.NoError(t, err)
	close(answered)
	require.ErrorContains(t, n.Flush(t.Context()), "cm: connection")
	require.Equal(t, bytes.Repeat([]byte{0xee}, len(whole)), whole)
}

// use is what a program does, from connecting to closing.
func use(addr string, c HostConfig) error {
	ctx := context.Background()
	h, err := Dial(ctx, addr, testNQN, c)
	if err != nil {
		return err
	}
	err = func() error {
		all, err := h.Namespaces(ctx)
		if err != nil {
			return err
		}
		for _, n := range all {
			_, err1 := n.WriteAt(make([]byte, blockSize), 0)
			_, err2 := n.WriteAt(make([]byte, 64<<10), 0)
			_, err3 := n.ReadAt(make([]byte, 4096), 0)
			if err := errors.Join(err1, err2, err3, n.Flush(ctx)); err != nil {
				return err
			}
		}
		return nil
	}()
	return errors.Join(err, h.Close())
}

// TestEndsAtEachStep: a target that ends its connection, or says nothing more, or answers with an error or with what no
// answer is, at any command from the first to the last, of an association or of a discovery. The program is told, and
// nothing of the association stays.
func TestEndsAtEachStep(t *testing.T) {
	for name, does := range map[string]func(addr string, c HostConfig) error{
		"association": use,
		"discovery": func(addr string, c HostConfig) error {
			_, err := Discover(context.Background(), addr, c)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) { endsAtEachStep(t, does) })
	}
}

func endsAtEachStep(t *testing.T, does func(addr string, c HostConfig) error) {
	t.Helper()
	for name, end := range map[string]func(q *scriptedQueue, c command){
		"reset":   func(q *scriptedQueue, _ command) { go func() { _ = q.conn.Abort() }() },
		"close":   func(q *scriptedQueue, _ command) { go func() { _ = q.conn.Close() }() },
		"silence": func(*scriptedQueue, command) {},
		"refusal": func(q *scriptedQueue, c command) { q.answer(completion{cid: c.cid(), status: InternalError}) },
		"short":   func(q *scriptedQueue, _ command) { q.send(make([]byte, 15)) },
		"long":    func(q *scriptedQueue, _ command) { q.send(make([]byte, 4096)) },
		"another": func(q *scriptedQueue, c command) { q.answer(completion{cid: c.cid() ^ 0x8000}) },
		"flood": func(q *scriptedQueue, c command) {
			for range 40 { // more than the host has receives for
				q.answer(completion{cid: c.cid() ^ 0x8000})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			at, s := -1, &scripted{}
			s.instead = func(q *scriptedQueue, c command) bool {
				if s.seen-1 != at {
					return false
				}
				end(q, c)
				return true
			}
			s.play(t)
			c := HostConfig{KeepAlive: -1}
			require.NoError(t, does(s.addr, c))
			s.mu.Lock()
			steps := s.seen
			s.mu.Unlock()
			require.Greater(t, steps, 4)
			c.CommandTimeout, c.CloseTimeout = 300*time.Millisecond, 300*time.Millisecond
			book := leakcheck.Open(t)
			for i := range steps {
				s.mu.Lock()
				at, s.seen = i, 0
				s.mu.Unlock()
				err := does(s.addr, c)
				require.Error(t, err, "step %d", i)
				assert.Contains(t, err.Error(), "nvmeof: ", "step %d", i)
			}
			book.Settle()
		})
	}
}

// TestBadControllers: a target whose words about itself no host can work with.
func TestBadControllers(t *testing.T) {
	page := func(cns byte, change func([]byte)) *scripted {
		return &scripted{page: func(c command, b []byte) {
			if c.opcode() == adminIdentify && c[40] == cns {
				change(b)
			}
		}}
	}
	properties := func(capabilities, status uint64) *scripted {
		return &scripted{instead: func(q *scriptedQueue, c command) bool {
			if c.opcode() != fabricsCommand || c.fctype() != typePropertyGet {
				return false
			}
			v := status
			if c.dw(11) == regCAP {
				v = capabilities
			}
			q.answer(completion{cid: c.cid(), result: v})
			return true
		}}
	}
	for name, tt := range map[string]struct {
		s    *scripted
		says string
	}{
		"no private data":    {&scripted{reply: func(hello) []byte { return nil }}, "want 32: is an NVMe over Fabrics target there?"},
		"another format":     {&scripted{reply: func(hello) []byte { return []byte{31: 0, 0: 1} }}, "of format 1"},
		"few receives":       {&scripted{reply: func(hello) []byte { return []byte{31: 0, 2: 30} }}, "receives for 30 commands, want 31"},
		"a rejection":        {&scripted{reject: rejected(rejectNoResources)}, "transport status 6, no resources"},
		"another rejection":  {&scripted{reject: rejected(99)}, "transport status 99"},
		"no NVMe's":          {&scripted{reject: []byte("go away")}, "not as an NVMe target does"},
		"no NVM command set": {properties(63|0xff<<capTO, cstsRDY), "NVM command set"},
		"queues of one":      {properties(capNVM|0xff<<capTO, cstsRDY), "have 1 place, want 2"},
		"never ready":        {properties(capNVM|1<<capTO|63, 0), "did not become ready in 500ms"},
		"failed":             {properties(capNVM|0xff<<capTO|63, cstsCFS), "has failed"},
		"no keyed SGLs":      {page(idController, func(b []byte) { clear(b[ctrlSGLS:][:4]) }), "no keyed SGL"},
		"short capsules":     {page(idController, func(b []byte) { b[ctrlIOCCSZ], b[ctrlIOCCSZ+1] = 3, 0 }), "capsules of 48 octets"},
		"short answers":      {page(idController, func(b []byte) { b[ctrlIORCSZ] = 0 }), "answers with 0 octets"},
		"another controller": {page(idController, func(b []byte) { b[ctrlID] = 7 }), "1 by Connect, and 7 by Identify"},
		"a list backwards":   {page(idActiveList, func(b []byte) { b[0], b[4] = 5, 5 }), "has 5 behind 5"},
		"a full list again":  {page(idActiveList, func(b []byte) { b[0] = 1; fill(b) }), "has 1 behind 1024"},
		"no blocks":          {page(idNS, func(b []byte) { clear(b[:8]) }), "has no blocks"},
		"metadata":           {page(idNS, func(b []byte) { b[nsFormats] = 8 }), "8 octets of metadata"},
		"blocks of 2^200":    {page(idNS, func(b []byte) { b[nsFormats+2] = 200 }), "2^200"},
		"2^64 blocks":        {page(idNS, func(b []byte) { le.PutUint64(b, 1<<63) }), "more than 2^63"},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorContains(t, use(tt.s.play(t).addr, HostConfig{}), tt.says)
		})
	}
}

// fill makes a list full: 1 to 1024.
func fill(b []byte) {
	for i := range len(b) / 4 {
		le.PutUint32(b[4*i:], uint32(i+1))
	}
}

// TestBadDiscovery: logs that have no end.
func TestBadDiscovery(t *testing.T) {
	generation := uint64(0)
	for name, tt := range map[string]struct {
		change func(b []byte)
		says   string
	}{
		"too many":          {func(b []byte) { le.PutUint64(b[8:], 1<<62) }, "records, want 4096 at most"},
		"a format":          {func(b []byte) { b[16] = 1 }, "format 1"},
		"another each time": {func(b []byte) { generation++; le.PutUint64(b, generation) }, "ConnectTimeout is 2s"},
	} {
		t.Run(name, func(t *testing.T) {
			s := (&scripted{page: func(c command, b []byte) {
				if c.opcode() == adminGetLogPage {
					tt.change(b)
				}
			}}).play(t)
			_, err := Discover(t.Context(), s.addr, HostConfig{ConnectTimeout: 2 * time.Second})
			require.ErrorContains(t, err, tt.says)
		})
	}
}

// TestSilentKeepAlive: a target that answers no Keep Alive any more is found out, though no call waits for it.
func TestSilentKeepAlive(t *testing.T) {
	s := (&scripted{instead: func(_ *scriptedQueue, c command) bool { return c.opcode() == adminKeepAlive }}).play(t)
	h := dialHost(t, s.addr, HostConfig{KeepAlive: time.Second})
	<-h.Done()
	require.ErrorContains(t, h.Err(), "has not answered Keep Alive (queue 0) for 1s")
}

// TestCloseIsBounded: Close waits for a call that has no answer no longer than CloseTimeout; the call says that it was
// closed.
func TestCloseIsBounded(t *testing.T) {
	got := make(chan struct{})
	s := (&scripted{instead: func(_ *scriptedQueue, c command) bool {
		if c.opcode() != cmdRead {
			return false
		}
		close(got)
		return true
	}}).play(t)
	h := dialHost(t, s.addr, HostConfig{CloseTimeout: 100 * time.Millisecond, KeepAlive: -1})
	n := diskOf(t, h, 1)
	var all sync.WaitGroup
	all.Go(func() {
		_, err := n.ReadAt(make([]byte, blockSize), 0)
		assert.ErrorContains(t, err, "closed")
	})
	<-got
	require.ErrorContains(t, h.Close(), "calls were under way")
	all.Wait()
}

// TestInvalidatesAnothers: an answer that takes a key away from another command is a breach, and ends both.
func TestInvalidatesAnothers(t *testing.T) {
	var first command
	s := (&scripted{instead: func(q *scriptedQueue, c command) bool {
		switch {
		case q.id == 0 || c.opcode() == fabricsCommand:
			return false
		case first == nil:
			first = c
			return true
		}
		b := make([]byte, completionSize)
		completion{cid: c.cid()}.put(b)
		copy(q.out.Bytes(), b)
		q.post(verbs.Request{Op: verbs.OpSendInvalidate, Invalidate: q.at(first).key, SGL: q.out.SGL(0, completionSize)})
		return true
	}}).play(t)
	h := dialHost(t, s.addr, HostConfig{KeepAlive: -1})
	n := diskOf(t, h, 1)
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			_, err := n.ReadAt(make([]byte, blockSize), 0)
			assert.ErrorContains(t, err, "which is not the command's")
		})
	}
	all.Wait()
}
