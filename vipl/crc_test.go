package vipl

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// VI/TCP 3.6: a connection has CRCs if both ends ask. Both programs see what was agreed, for
// as long as they are connected, and what was asked for before and afterwards.
func TestCRCAgreed(t *testing.T) {
	for _, c := range []struct{ nic, client, server bool }{
		{false, false, false}, {false, false, true}, {false, true, false}, {false, true, true}, {true, false, false},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			a, b := newHost(t, Config{CRC: c.nic}), newHost(t, Config{CRC: c.nic})
			vi := func(h *host, crc bool) *Vi {
				v := h.vi(ServiceReliableDelivery, nil, nil)
				attributes := h.attributes(ServiceReliableDelivery)
				attributes.CRC = crc
				require.NoError(t, v.SetViAttributes(attributes))
				return v
			}
			crc := func(v *Vi) bool {
				_, attributes, err := v.QueryVi()
				require.NoError(t, err)
				return attributes.CRC
			}
			va, vb := vi(a, c.client), vi(b, c.server)
			askedA, askedB := c.nic || c.client, c.nic || c.server
			agreed := askedA && askedB
			require.Equal(t, askedA, crc(va))
			require.Equal(t, askedB, crc(vb))

			requested := make(chan *ViAttributes, 1)
			go func() {
				remote, err := va.ConnectRequest(within(t), nil, b.address("here"))
				if err != nil {
					remote = nil
				}
				requested <- remote
			}()
			conn, err := b.nic.ConnectWait(within(t), b.address("here"))
			require.NoError(t, err)
			require.Equal(t, askedA, conn.RemoteViAttribs().CRC, "proposed")
			require.NoError(t, conn.ConnectAccept(vb))
			remote := <-requested
			require.NotNil(t, remote)
			require.Equal(t, agreed, remote.CRC)
			require.Equal(t, agreed, crc(va))
			require.Equal(t, agreed, crc(vb))
			for _, end := range []struct {
				h     *host
				v     *Vi
				asked bool
			}{{a, va, askedA}, {b, vb, askedB}} {
				if end.asked && !agreed {
					want := ErrorDescriptor{NicHandle: end.h.nic, ViHandle: end.v, ResourceCode: ResourceVi, ErrorCode: ErrorNoCRC}
					require.Equal(t, want, end.h.waitError(), "who asked in vain is told")
				}
				end.h.noError()
			}

			require.NoError(t, va.Disconnect())
			waitState(t, vb, StateError)
			require.Equal(t, askedA, crc(va))
			require.Equal(t, agreed, crc(vb), "until Disconnect")
			require.NoError(t, vb.Disconnect())
			require.Equal(t, askedB, crc(vb))
		})
	}
}

// TestCRCRequired: a NIC that requires CRCs makes no connection without.
func TestCRCRequired(t *testing.T) {
	for _, c := range []struct {
		name               string
		client, server     Config
		atClient, atServer Return
	}{
		{"by the client", Config{RequireCRC: true}, Config{}, ErrInvalidParameter, Success},
		{"by the server", Config{}, Config{RequireCRC: true}, ErrReject, ErrInvalidParameter},
		{"by both", Config{RequireCRC: true}, Config{RequireCRC: true}, Success, Success},
		{"by the client, offered by the server", Config{RequireCRC: true}, Config{CRC: true}, Success, Success},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := newHost(t, c.client), newHost(t, c.server)
			va, vb := a.vi(ServiceReliableDelivery, nil, nil), b.vi(ServiceReliableDelivery, nil, nil)
			requested := make(chan error, 1)
			go func() {
				_, err := va.ConnectRequest(within(t), nil, b.address("here"))
				requested <- err
			}()
			conn, err := b.nic.ConnectWait(within(t), b.address("here"))
			require.NoError(t, err)
			err = conn.ConnectAccept(vb)
			require.Equal(t, c.atServer, ReturnOf(err), "%v", err)
			if err != nil { // the request stands
				require.NoError(t, conn.ConnectReject())
			}
			err = <-requested
			require.Equal(t, c.atClient, ReturnOf(err), "%v", err)
			if err == nil {
				_, attributes, err := va.QueryVi()
				require.NoError(t, err)
				require.True(t, attributes.CRC)
			}
		})
	}
}
