package vitcp_test

import (
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/vitcp"
)

func TestEndpointConfigIsChecked(t *testing.T) {
	good := vitcp.EndpointConfig{MTU: 1, STags: stag.NewTable(stag.Config{}), Handler: newRecorder()}
	_, err := vitcp.NewEndpoint(nil, good)
	require.NoError(t, err)
	for name, spoil := range map[string]func(*vitcp.EndpointConfig){
		"level":    func(c *vitcp.EndpointConfig) { c.Level = 3 },
		"MTU":      func(c *vitcp.EndpointConfig) { c.MTU = 0 },
		"table":    func(c *vitcp.EndpointConfig) { c.STags = nil },
		"handler":  func(c *vitcp.EndpointConfig) { c.Handler = nil },
		"depth":    func(c *vitcp.EndpointConfig) { c.SendDepth = 65536 },
		"receives": func(c *vitcp.EndpointConfig) { c.ReceiveDepth = -1 },
		"segment":  func(c *vitcp.EndpointConfig) { c.Segment = 255 },
		"long":     func(c *vitcp.EndpointConfig) { c.Segment = 65536 },
		"linger":   func(c *vitcp.EndpointConfig) { c.Linger = -1 },
	} {
		t.Run(name, func(t *testing.T) {
			c := good
			spoil(&c)
			_, err := vitcp.NewEndpoint(nil, c)
			require.ErrorIs(t, err, vitcp.ErrConfig)
		})
	}
}

func TestAgreedEndpointConfig(t *testing.T) {
	a := vitcp.Agreed{Level: vitcp.ReliableDelivery, MTU: 5, CRC: true, ReadWindow: 3, LocalNumber: 7, PeerNumber: 8, PeerRxPosted: 9,
		Local: vitcp.FlowControl | vitcp.ReadEnable, Peer: vitcp.WriteEnable}
	want := vitcp.EndpointConfig{Level: vitcp.ReliableDelivery, MTU: 5, CRC: true, OutboundReads: 3, InboundReads: 3, Number: 7,
		PeerNumber: 8, PeerPosted: 9, FlowControl: true, AllowRead: true}
	assert.Equal(t, want, a.EndpointConfig())
	a.Level, a.Local, a.Peer = vitcp.Unreliable, vitcp.WriteEnable, vitcp.FlowControl
	want.Level, want.OutboundReads, want.InboundReads = vitcp.Unreliable, 0, 0
	want.FlowControl, want.AllowRead, want.PeerFlowControl, want.AllowWrite = false, false, true, true
	assert.Equal(t, want, a.EndpointConfig())
}

func TestEarlyOctets(t *testing.T) {
	h := &hand{t: t}
	early := h.frame(vitcp.Header{Type: vitcp.Send, Flags: eom, Number: 1}, nil, make([]byte, 20000))
	x, y := pipe(t)
	s := newSide(t, x, vitcp.EndpointConfig{Early: early[:19000]})
	clear(early[:19000]) // it is copied
	m := s.register(20000, allRights)
	s.recv(m.all()...)
	s.Start()
	go func() { _, _ = y.Write(early[19000:]) }()
	s.received(vitcp.OpReceive, 0, 20000)
}

func TestStrings(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{vitcp.ReliableReception.String(), "Reliable Reception"},
		{vitcp.Level(9).String(), "Level(9)"},
		{vitcp.OpRemoteWrite.String(), "Remote RDMA Write"},
		{vitcp.Op(9).String(), "Op(9)"},
		{vitcp.Flaws(0).String(), "none"},
		{(vitcp.FlawPartial | vitcp.FlawFlushed).String(), "partial, flushed"},
		{vitcp.EventWriteData.String(), "RDMA Write data error"},
		{vitcp.Event(9).String(), "Event(9)"},
		{vitcp.CauseCRC.String(), "CRC error"},
		{vitcp.Cause(99).String(), "Cause(99)"},
		{(&vitcp.EndError{Cause: vitcp.CausePeerClosed}).Error(), "vitcp: closed by the peer"},
		{(&vitcp.EndError{Cause: vitcp.CauseLost, Err: errors.New("x")}).Error(), "vitcp: connection lost: x"},
	} {
		assert.Equal(t, c.want, c.got)
	}
	require.ErrorIs(t, &vitcp.EndError{Err: io.EOF}, io.EOF)
	// The bits of the status field (VI Architecture 10.2).
	assert.Equal(t, []vitcp.Flaws{2, 4, 8, 16, 32, 64, 128, 256}, []vitcp.Flaws{vitcp.FlawFormat, vitcp.FlawProtection, vitcp.FlawLength,
		vitcp.FlawPartial, vitcp.FlawFlushed, vitcp.FlawTransport, vitcp.FlawRemoteProtection, vitcp.FlawRemoteDescriptor})
}
