package vi

import (
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/rnic/internal/clitest"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

// viProxy stands between a client and a server, looks at each segment, and may spoil it, or
// cut the stream off behind it.
type viProxy struct {
	addr   string
	server string
	look   viLook
	done   sync.WaitGroup

	mu    sync.Mutex
	conns []*viSeen // guarded by mu, with what they point to
}

// viLook is called with one segment at a time, and reports whether to go on.
type viLook func(s *segment.Segment, octets []byte, toServer bool) bool

// viSeen is what went over one connection.
type viSeen struct {
	request, accept segment.CE
	messages        map[segment.Type]int
	faults          []segment.ParseFault
}

func newViProxy(t *testing.T, server string, look viLook) *viProxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &viProxy{addr: l.Addr().String(), server: server, look: look}
	p.done.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			p.between(client)
		}
	})
	t.Cleanup(func() {
		l.Close()
		p.done.Wait()
	})
	return p
}

func (p *viProxy) between(client net.Conn) {
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		client.Close()
		return
	}
	seen := &viSeen{messages: make(map[segment.Type]int)}
	p.mu.Lock()
	p.conns = append(p.conns, seen)
	p.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { p.carry(server, client, seen, true) })
	both.Go(func() { p.carry(client, server, seen, false) })
	p.done.Go(func() {
		both.Wait()
		client.Close()
		server.Close()
	})
}

// carry carries segments until one end closes, and then says so to the other.
func (p *viProxy) carry(to, from net.Conn, seen *viSeen, toServer bool) {
	defer to.(*net.TCPConn).CloseWrite() //nolint:errcheck // it may be gone
	b := make([]byte, segment.MaxSegment)
	for {
		if _, err := io.ReadFull(from, b[:segment.SegmentHeader]); err != nil {
			return
		}
		n := binary.BigEndian.Uint16(b[2:])
		if _, err := io.ReadFull(from, b[segment.SegmentHeader:n]); err != nil {
			return
		}
		more := p.see(b[:n], seen, toServer)
		if _, err := to.Write(b[:n]); err != nil || !more {
			return
		}
	}
}

func (p *viProxy) see(b []byte, seen *viSeen, toServer bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, fault := segment.Parse(b, seen.accept.Options&segment.OptionCRC != 0)
	if fault != segment.FaultNone {
		seen.faults = append(seen.faults, fault)
	}
	switch s.Type {
	case segment.ConnectRequest:
		seen.request = s.CE()
	case segment.ConnectAccept:
		seen.accept = s.CE()
	}
	if s.Last() {
		seen.messages[s.Type]++
	}
	return p.look == nil || p.look(&s, b, toServer)
}

// What the table says is what is on the wire: level, CRC and operation.
func TestViPingOnTheWire(t *testing.T) {
	s := startViServer(t)
	p := newViProxy(t, s.Addr, nil)
	const rounds, sizes = 5, 2
	c := viPingOnce(t, p.addr, "-C 5 -S 10,100000")
	require.Zero(t, c.Status, c.Stderr)
	require.Zero(t, (<-s.Done).Status)

	p.mu.Lock()
	defer p.mu.Unlock()
	require.Len(t, p.conns, 6)
	session := p.conns[1].request.Called
	assert.NotEqual(t, viService, string(session))
	for i, seen := range p.conns {
		assert.Empty(t, seen.faults, i)
		for _, ce := range []segment.CE{seen.request, seen.accept} {
			level, ok := ce.Attributes.Level()
			assert.True(t, ok)
			assert.Equal(t, segment.Level(i/2), level)
			assert.Equal(t, i%2 == 1, ce.Options&segment.OptionCRC != 0)
			if i > 0 {
				assert.Equal(t, session, ce.Called, "nobody else may come in between")
			}
		}
		want := map[segment.Type]int{
			segment.ConnectRequest: 1, segment.ConnectAccept: 1,
			segment.Send:      2 + 2*rounds*sizes + 2,
			segment.RDMAWrite: 2 * rounds * sizes,
		}
		if i >= 2 {
			want[segment.RDMAWrite] += rounds * sizes
			want[segment.RDMAReadRequest] = rounds * sizes
			want[segment.RDMAReadResponse] = rounds * sizes
		}
		delete(seen.messages, segment.NOP)
		assert.Equal(t, want, seen.messages, i)
	}
}

// Both ends show what was agreed, which need not be what was asked for: here somebody on the
// way takes the CRC option out of the request.
func TestViPingShowsWhatWasAgreed(t *testing.T) {
	s := startViServer(t)
	const option = segment.SegmentHeader + segment.CEHeader
	p := newViProxy(t, s.Addr, func(seg *segment.Segment, octets []byte, _ bool) bool {
		if seg.Type == segment.ConnectRequest && seg.CE().Options&segment.OptionCRC != 0 {
			octets[option] = 0x70 // an option that nobody knows
		}
		return true
	})
	c := viPingOnce(t, p.addr, "--json -C 1 -S 10 --level delivery --crc both")
	require.Zero(t, c.Status, c.Stderr)
	served := <-s.Done
	require.Zero(t, served.Status, served.Stderr)

	var report viReport
	clitest.Decode(t, c.Stdout, &report)
	require.Len(t, report.Rows, 6)
	for _, row := range report.Rows {
		assert.False(t, row.CRC)
	}
	var summary viSummary
	clitest.Decode(t, served.Stdout, &summary)
	assert.Equal(t, 2, summary.Connections)
	assert.Zero(t, summary.CRC)
}

// Whatever is damaged on its way is found, by the end where it arrives, and both exit with 1.
func TestViPingFindsDamage(t *testing.T) {
	const (
		ended = "the peer ended the connection; what it printed says why"
		// The server compares while its answer is on the way.
		orEcho = ended + "|data mismatch: "
	)
	tests := []struct {
		name           string
		flags          string
		typ            segment.Type
		toServer       bool
		at             int // octet in the segment; from its end if negative
		client, server string
	}{
		{"Send there", "--crc off", segment.Send, true, 24 + 77, orEcho, "data mismatch: Send 2 of 100 octets differs at octet 77"},
		{"Send back", "--crc off", segment.Send, false, -1, "data mismatch: Send 2 of 100 octets differs at octet 99", ended},
		{"Write there", "--crc off", segment.RDMAWrite, true, 40, orEcho, "data mismatch: RDMA Write 2 of 100 octets differs at octet 0"},
		{"Write back", "--crc off", segment.RDMAWrite, false, 41, "data mismatch: RDMA Write 2 of 100 octets differs at octet 1", ended},
		{"immediate data there", "--crc off", segment.RDMAWrite, true, 8, ended, "data mismatch: RDMA Write 2 came with immediate data"},
		{"immediate data back", "--crc off", segment.RDMAWrite, false, 11, "data mismatch: immediate data", ended},
		{"Read", "--crc off", segment.RDMAReadResponse, false, 24 + 50, "data mismatch: RDMA Read 2 of 100 octets differs at octet 50", ended},
		{"Send there, CRC", "--crc on", segment.Send, true, 24 + 77, ended, "descriptor completed with an error: Receive, done, transport error\n"},
		{"Read, CRC", "--crc on", segment.RDMAReadResponse, false, 24 + 50, "descriptor completed with an error: RDMA Read, done, transport error\n", ended},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := startViServer(t)
			left := 3 // of the series that is spoilt, behind the notes
			if tt.typ == segment.Send {
				left++
			}
			p := newViProxy(t, s.Addr, func(seg *segment.Segment, octets []byte, toServer bool) bool {
				if seg.Type != tt.typ || toServer != tt.toServer {
					return true
				}
				if left--; left == 0 {
					octets[(tt.at+len(octets))%len(octets)] ^= 0x10
				}
				return true
			})
			c := viPingOnce(t, p.addr, "-C 5 -S 100 --level delivery "+tt.flags)
			assert.Equal(t, 1, c.Status)
			assert.Regexp(t, tt.client, c.Stderr)
			assert.Contains(t, c.Stderr, "Reliable Delivery, CRC "+strings.Fields(tt.flags)[1]+": ")
			assert.Empty(t, c.Stdout)
			served := <-s.Done
			assert.Equal(t, 1, served.Status)
			assert.Contains(t, served.Stderr, tt.server)
			assert.Regexp(t, `^\{"error":\{.*\}\}\n$`, served.Stdout, "it has --json, and no report")
		})
	}
}

// A client that is killed in the midst of a message.
func TestViPingCutOff(t *testing.T) {
	s := startViServer(t)
	p := newViProxy(t, s.Addr, func(seg *segment.Segment, _ []byte, toServer bool) bool {
		return !toServer || seg.Offset == 0 || seg.Last()
	})
	c := viPingOnce(t, p.addr, "-S 1M --level reception")
	assert.Equal(t, 1, c.Status)
	served := <-s.Done
	assert.Equal(t, 1, served.Status)
	assert.Contains(t, served.Stderr, "Reliable Reception: in the middle of a message the peer ended the connection;")
}
