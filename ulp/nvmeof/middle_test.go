package nvmeof

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// middle stands between one queue of a host and the target. It plays a host whose RNIC answers RDMA Reads when it
// likes, and behind what it sends later: a Read Response has no place in the order of Sends.
type middle struct {
	addr   string
	caught chan struct{} // a Read Response is held

	mu     sync.Mutex
	wake   *sync.Cond
	first  int // Read Responses that go through
	held   [][]byte
	paused bool // nothing goes to the host
	ended  bool
	target net.Conn
}

// between makes one; Read Responses behind the given number are held.
func between(t *testing.T, target string, responses int) *middle {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	m := &middle{addr: l.Addr().String(), caught: make(chan struct{}, 1024), first: responses}
	m.wake = sync.NewCond(&m.mu)
	var all sync.WaitGroup
	all.Go(func() {
		host, err := l.Accept()
		if err != nil {
			return
		}
		defer host.Close()
		up, err := net.Dial("tcp", target)
		if err != nil {
			return
		}
		defer up.Close()
		m.mu.Lock()
		m.target = up
		m.mu.Unlock()
		all.Go(func() { _, _ = io.Copy(host, gate{m, up}); _ = host.Close() })
		m.carry(bufio.NewReader(host))
	})
	t.Cleanup(func() {
		m.end()
		_ = l.Close()
		all.Wait()
	})
	return m
}

// end cuts the connection.
func (m *middle) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = true
	m.wake.Broadcast()
	if m.target != nil {
		_ = m.target.Close()
	}
}

// carry takes the host's octets to the target: an MPA Request (RFC 5044 7.1), then FPDUs without markers.
func (m *middle) carry(host *bufio.Reader) {
	head := make([]byte, 20)
	if _, err := io.ReadFull(host, head); err != nil {
		return
	}
	frame := slices.Concat(head, make([]byte, binary.BigEndian.Uint16(head[18:])))
	at := len(head)
	for {
		if _, err := io.ReadFull(host, frame[at:]); err != nil || !m.pass(frame) {
			return
		}
		head = make([]byte, 2)
		if _, err := io.ReadFull(host, head); err != nil {
			return
		}
		n := 2 + int(binary.BigEndian.Uint16(head))
		frame, at = slices.Concat(head, make([]byte, (n+3)&^3+4-2)), 2
	}
}

// pass sends a frame on, or holds it.
func (m *middle) pass(frame []byte) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	const response = 2 // RDMAP's Read Response, RFC 5040 4.1
	if frame[0] != 'M' && frame[3]&0xf == response {
		if m.first == 0 {
			m.held = append(m.held, frame)
			m.caught <- struct{}{}
			return true
		}
		m.first--
	}
	_, err := m.target.Write(frame)
	return err == nil
}

// letGo sends what is held, and holds nothing more.
func (m *middle) letGo() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, frame := range m.held {
		_, _ = m.target.Write(frame)
	}
	m.held, m.first = nil, 1<<30
}

// pause stops what goes to the host, or lets it go on.
func (m *middle) pause(yes bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.paused = yes
	m.wake.Broadcast()
}

// gate reads from the target unless the middle is paused.
type gate struct {
	m *middle
	net.Conn
}

func (g gate) Read(b []byte) (int, error) {
	n, err := g.Conn.Read(b)
	g.m.mu.Lock()
	defer g.m.mu.Unlock()
	for g.m.paused && !g.m.ended {
		g.m.wake.Wait()
	}
	return n, err
}
