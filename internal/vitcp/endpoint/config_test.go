package endpoint_test

import (
	"errors"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/vitcp/endpoint"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
	"github.com/softrnic/softrnic/stag"
)

func TestEndpointConfigIsChecked(t *testing.T) {
	good := endpoint.Config{MTU: 1, STags: stag.NewTable(stag.Config{}), Handler: newRecorder()}
	near, far := net.Pipe()
	defer far.Close()
	defer near.Close()
	e, err := endpoint.New(near, good)
	require.NoError(t, err)
	defer e.Close()
	for name, spoil := range map[string]func(*endpoint.Config){
		"level":    func(c *endpoint.Config) { c.Level = 3 },
		"MTU":      func(c *endpoint.Config) { c.MTU = 0 },
		"table":    func(c *endpoint.Config) { c.STags = nil },
		"handler":  func(c *endpoint.Config) { c.Handler = nil },
		"depth":    func(c *endpoint.Config) { c.SendDepth = 65536 },
		"receives": func(c *endpoint.Config) { c.ReceiveDepth = -1 },
		"segment":  func(c *endpoint.Config) { c.Segment = 255 },
		"long":     func(c *endpoint.Config) { c.Segment = 65536 },
		"linger":   func(c *endpoint.Config) { c.Linger = -1 },
	} {
		t.Run(name, func(t *testing.T) {
			c := good
			spoil(&c)
			_, err := endpoint.New(nil, c)
			require.ErrorIs(t, err, endpoint.ErrConfig)
		})
	}
}

func TestEarlyOctets(t *testing.T) {
	h := &hand{t: t}
	early := h.frame(segment.Header{Type: segment.Send, Flags: eom, Number: 1}, nil, make([]byte, 20000))
	x, y := pipe(t)
	s := newSide(t, x, endpoint.Config{Early: early[:19000]})
	clear(early[:19000]) // it is copied
	m := s.register(20000, allRights)
	s.recv(m.all()...)
	s.Start()
	go func() { _, _ = y.Write(early[19000:]) }()
	s.received(endpoint.OpReceive, 0, 20000)
}

func TestStrings(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{endpoint.OpRemoteWrite.String(), "Remote RDMA Write"},
		{endpoint.Op(9).String(), "Op(9)"},
		{endpoint.Flaws(0).String(), "none"},
		{(endpoint.FlawPartial | endpoint.FlawFlushed).String(), "partial, flushed"},
		{endpoint.EventWriteData.String(), "RDMA Write data error"},
		{endpoint.Event(9).String(), "Event(9)"},
		{endpoint.CauseCRC.String(), "CRC error"},
		{endpoint.Cause(99).String(), "Cause(99)"},
		{(&endpoint.EndError{Cause: endpoint.CausePeerClosed}).Error(), "vitcp: closed by the peer"},
		{(&endpoint.EndError{Cause: endpoint.CauseLost, Err: errors.New("x")}).Error(), "vitcp: connection lost: x"},
	} {
		assert.Equal(t, c.want, c.got)
	}
	require.ErrorIs(t, &endpoint.EndError{Err: io.EOF}, io.EOF)
	// The bits of the status field (VI Architecture 10.2).
	assert.Equal(t, []endpoint.Flaws{2, 4, 8, 16, 32, 64, 128, 256}, []endpoint.Flaws{endpoint.FlawFormat, endpoint.FlawProtection, endpoint.FlawLength,
		endpoint.FlawPartial, endpoint.FlawFlushed, endpoint.FlawTransport, endpoint.FlawRemoteProtection, endpoint.FlawRemoteDescriptor})
}
