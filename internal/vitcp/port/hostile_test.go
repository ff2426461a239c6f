//go:build linux

package port

import (
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/ownsock"
	"github.com/softrnic/softrnic/internal/test/leakcheck"
	"github.com/softrnic/softrnic/internal/vitcp"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

// knocked is a connection to the process that accepts at an address.
func knocked(t *testing.T, at netip.AddrPort) *net.UnixConn {
	t.Helper()
	c, err := ownsock.Dial(doorOf(at))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// octets are a message by hand.
func octets(kind byte, body string) []byte {
	return append([]byte{kind, byte(len(body) >> 16), byte(len(body) >> 8), byte(len(body))}, body...)
}

func number(id uint32) string { return string(binary.BigEndian.AppendUint32(nil, id)) }

func hello() []byte { return octets(msgHello, string(appendHello(nil, 0))) }

func waits(id uint32, called segment.Discriminator) []byte {
	return octets(msgWait, number(id)+string(appendFilter(nil, &vitcp.Filter{Called: called})))
}

// passed sends octets with descriptors of files.
func passed(t *testing.T, c *net.UnixConn, b []byte, files ...syscall.Conn) {
	t.Helper()
	var fds []int
	for _, f := range files {
		rc, err := f.SyscallConn()
		require.NoError(t, err)
		require.NoError(t, rc.Control(func(fd uintptr) { fds = append(fds, int(fd)) }))
	}
	_, _, err := c.WriteMsgUnix(b, syscall.UnixRights(fds...), nil)
	require.NoError(t, err)
}

// over waits for the end of a connection, whatever comes before.
func over(t *testing.T, c net.Conn) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(long))
	_, err := io.Copy(io.Discard, c)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
}

// TestHostileOther: what another process of this user says at the door costs that one its session, and those who share
// the port nothing.
func TestHostileOther(t *testing.T) {
	at := unused(t)
	owner := open(t, process(), at)
	member := open(t, process(), at)
	connects(t, member, "before")
	file, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer file.Close()
	join := string(hello())
	many := join
	for id := range uint32(maxWaits + 1) {
		many += string(waits(id, "many"))
	}
	ledger := leakcheck.Open(t)
	for name, c := range map[string]struct {
		say   string
		files []syscall.Conn
	}{
		"nothing of ours":        {say: "GET / HTTP/1.1\r\n\r\n"},
		"too long":               {say: "\x01\xff\xff\xff"},
		"too long a wait":        {say: join + "\x04\x02\x00\x01"},
		"another hello":          {say: string(octets(msgHello, "VI port 2"+number(0)))},
		"no hello":               {say: string(waits(1, "x"))},
		"a welcome":              {say: string(octets(msgWelcome, ""))},
		"a descriptor":           {say: join, files: []syscall.Conn{file}},
		"descriptors":            {say: join, files: []syscall.Conn{file, file}},
		"many descriptors":       {say: join, files: []syscall.Conn{file, file, file, file, file, file, file, file}},
		"a number that is short": {say: join + string(octets(msgLeave, "abc"))},
		"no type":                {say: join + string(octets(99, number(1)))},
		"a request":              {say: join + string(octets(msgRequest, number(1)))},
		"no filter":              {say: join + string(octets(msgWait, number(1)))},
		"half a filter":          {say: join + string(waits(1, "x")[:12]) + "\xff\xff\xff\xff"},
		"a long discriminator":   {say: join + string(waits(1, segment.Discriminator(strings.Repeat("x", 65))))},
		"twice the same":         {say: join + string(waits(1, "x")) + string(waits(1, "x"))},
		"too many waits":         {say: many},
		"a leave that has more":  {say: join + string(octets(msgLeave, number(1)+"x"))},
	} {
		t.Run(name, func(t *testing.T) {
			c2 := knocked(t, at)
			go func() { // it may be gone before all is said
				if c.files == nil {
					_, _ = c2.Write([]byte(c.say))
				}
			}()
			if c.files != nil {
				passed(t, c2, []byte(c.say), c.files...)
			}
			over(t, c2)
			_ = c2.Close()
		})
	}
	ledger.Settle()
	connects(t, owner, "a").carries(t)
	connects(t, member, "b").carries(t)
}

// TestOtherEnds: another process ends, or says no more, at each step; a request for which it waited goes to one who is
// there, or is asked again.
func TestOtherEnds(t *testing.T) {
	steps := []struct {
		name string
		say  []byte
		ends bool // is it driven out for its silence?
	}{
		{"nothing", nil, true},
		{"half a hello", hello()[:7], true},
		{"a hello", hello(), false},
		{"half a wait", append(hello(), waits(1, "x")[:9]...), true},
		{"a wait", append(hello(), waits(1, "x")...), false},
		{"a leave", append(append(hello(), waits(1, "x")...), octets(msgLeave, number(1))...), false},
	}
	for _, s := range steps {
		t.Run("end behind "+s.name, func(t *testing.T) {
			at, _, member := sharing(t, long)
			ledger := leakcheck.Open(t)
			c := knocked(t, at)
			_, err := c.Write(s.say)
			require.NoError(t, err)
			require.NoError(t, c.Close())
			l := connects(t, member, "x")
			l.carries(t)
			_, _ = l.client.Close(), l.server.Close()
			ledger.Settle()
		})
		t.Run("silence behind "+s.name, func(t *testing.T) {
			patience := long
			if s.ends {
				patience = 20 * time.Millisecond
			}
			at, owner, member := sharing(t, patience)
			c := knocked(t, at)
			if _, err := c.Write(s.say); !s.ends { // else it may be driven out before it has said that
				require.NoError(t, err)
			}
			if s.ends {
				over(t, c)
			}
			if s.name == "a wait" { // it has waited longest
				d := dialling(bounded(t), at, "x")
				require.Eventually(t, func() bool { return owner.s.sessions() == 2 }, long, time.Millisecond)
				got := readRequest(t, c)
				require.NoError(t, got.Close()) // upon which the client asks again
				links(t, waiting4(bounded(t), member, "x"), d).carries(t)
			}
			connects(t, member, "y").carries(t)
			connects(t, owner, "z").carries(t)
			require.NoError(t, c.Close())
		})
	}
}

// sharing is a port that two processes use, the first of which waits so long for others.
func sharing(t *testing.T, patience time.Duration) (at netip.AddrPort, owner, member *Use) {
	t.Helper()
	at = unused(t)
	owner, member = open(t, NewPorts(patience), at), open(t, process(), at)
	connects(t, member, "before")
	return at, owner, member
}

// TestDescriptorsByTheOctet: each octet of a message brings a descriptor along. The first that is too many ends the
// session: this process has few, and keeps none.
func TestDescriptorsByTheOctet(t *testing.T) {
	at := unused(t)
	owner := open(t, process(), at)
	connects(t, owner, "before")
	file, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer file.Close()
	descriptors := func() int {
		all, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		return len(all)
	}
	for name, begin := range map[string][]byte{"a hello": octets(msgHello, strings.Repeat("x", 1000))[:4], "a wait": append(hello(), "\x04\x00\x03\xe8"...)} {
		t.Run(name, func(t *testing.T) {
			ledger := leakcheck.Open(t)
			c := knocked(t, at)
			_, err := c.Write(begin)
			require.NoError(t, err)
			before, most := descriptors(), 0
			rc, err := file.SyscallConn()
			require.NoError(t, err)
			for range 900 {
				require.NoError(t, rc.Control(func(fd uintptr) {
					_, _, err = c.WriteMsgUnix([]byte{0}, syscall.UnixRights(int(fd)), nil)
				}))
				if err != nil {
					break
				}
				most = max(most, descriptors()-before)
			}
			require.Error(t, err, "the session goes on")
			require.Less(t, most, 50)
			over(t, c)
			_ = c.Close()
			ledger.Settle()
		})
	}
	connects(t, owner, "after").carries(t)
}

// sessions is how many there are.
func (s *shared) sessions() int {
	s.mu.Lock()
	o := s.owner
	s.mu.Unlock()
	if o == nil {
		return 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.sessions)
}

// readRequest is the connection that a raw process is given.
func readRequest(t *testing.T, c *net.UnixConn) *os.File {
	t.Helper()
	conn, err := ownsock.NewConn(c, long)
	require.NoError(t, err)
	for {
		m, err := conn.Read(long)
		require.NoError(t, err)
		if m.Type == msgRequest {
			require.NotNil(t, m.File)
			return m.File
		}
		m.Discard()
	}
}

// TestManyKnocks: any number of processes that say nothing, and more than may share it, keep the port from none.
func TestManyKnocks(t *testing.T) {
	at := unused(t)
	owner := open(t, process(), at)
	connects(t, owner, "first")
	ledger := leakcheck.Open(t)
	var silent []*net.UnixConn
	for range 4 * maxKnocks {
		silent = append(silent, knocked(t, at))
	}
	u, err := process().Open(t.Context(), at, Config{MatchTimeout: long})
	require.NoError(t, err)
	l := connects(t, u, "x")
	l.carries(t)
	_, _ = l.client.Close(), l.server.Close()
	u.Close()
	for _, c := range silent {
		_ = c.Close()
	}
	ledger.Settle()

	var members []*net.UnixConn
	for range maxSessions {
		c := knocked(t, at)
		_, err := c.Write(hello())
		require.NoError(t, err)
		members = append(members, c)
	}
	require.Eventually(t, func() bool { return owner.s.sessions() == maxSessions }, long, time.Millisecond)
	_, err = process().Open(t.Context(), at, Config{})
	require.ErrorIs(t, err, ErrInUse)
	require.ErrorContains(t, err, "64 processes share it already")
	for _, c := range members {
		_ = c.Close()
	}
	ledger.Settle()
	connects(t, owner, "last").carries(t)
}
