package vitcp_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/softrnic/softrnic/internal/vitcp"
	"github.com/softrnic/softrnic/internal/vitcp/endpoint"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

func TestAgreedEndpointConfig(t *testing.T) {
	a := vitcp.Agreed{Level: segment.ReliableDelivery, MTU: 5, CRC: true, ReadWindow: 3, LocalNumber: 7, PeerNumber: 8, PeerRxPosted: 9,
		Local: segment.FlowControl | segment.ReadEnable, Peer: segment.WriteEnable}
	want := endpoint.Config{Level: segment.ReliableDelivery, MTU: 5, CRC: true, OutboundReads: 3, InboundReads: 3, Number: 7,
		PeerNumber: 8, PeerPosted: 9, FlowControl: true, AllowRead: true}
	assert.Equal(t, want, a.EndpointConfig())
	a.Level, a.Local, a.Peer = segment.Unreliable, segment.WriteEnable, segment.FlowControl
	want.Level, want.OutboundReads, want.InboundReads = segment.Unreliable, 0, 0
	want.FlowControl, want.AllowRead, want.PeerFlowControl, want.AllowWrite = false, false, true, true
	assert.Equal(t, want, a.EndpointConfig())
}
