package vitcp_test

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/vitcp"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

// No single bit that is damaged on the way turns the CRC off: neither of the request nor of
// the answer, in which the option itself may be hit.
func TestOneBitDoesNotTurnTheCRCOff(t *testing.T) {
	for _, typ := range []segment.Type{segment.ConnectRequest, segment.ConnectAccept} {
		for _, options := range []segment.Options{segment.OptionCRC, segment.OptionCRC | segment.OptionUrgent} {
			ce := segment.CE{Attributes: segment.Attributes(0).WithLevel(segment.ReliableDelivery), MTU: 1, Calling: "a", Called: "b", Options: options}
			whole := ce.Append(nil, segment.Header{Type: typ})
			for bit := range 8 * len(whole) {
				if bit/8 == 2 || bit/8 == 3 {
					continue // another length is another segment
				}
				b := append([]byte(nil), whole...)
				b[bit/8] ^= 1 << (bit % 8)
				_, fault := segment.Parse(b, false)
				assert.NotEqual(t, segment.FaultNone, fault, "%v: bit %d of octet %d", typ, bit%8, bit/8)
			}
		}
	}
}

// An end that requires a CRC has it, or no connection.
func TestRequiredCRC(t *testing.T) {
	without, offers, requires := vitcp.Config{}, vitcp.Config{CRC: true}, vitcp.Config{RequireCRC: true}
	for _, c := range []struct {
		name            string
		active, passive vitcp.Config
		at              int // the end that refuses, 1 or 2; 0: none
	}{
		{"active requires, passive has none", requires, without, 1},
		{"passive requires, active has none", without, requires, 2},
		{"active requires", requires, offers, 0},
		{"passive requires", offers, requires, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(bounded(t))
			defer cancel()
			ours, theirs := net.Pipe()
			waiting := in(func() (*vitcp.Agreed, error) {
				r, err := vitcp.Await(ctx, theirs, vitcp.Filter{Called: "b"})
				if err != nil {
					return nil, err
				}
				a, err := r.Accept(ctx, c.passive)
				if err != nil {
					assert.NoError(t, r.Reject(ctx, vitcp.ReasonCRC), "the request stands")
				}
				return a, err
			})
			a, err := vitcp.Connect(ctx, ours, "a", "b", c.active)
			p := <-waiting
			var mismatch *vitcp.MismatchError
			var rejected *vitcp.RejectedError
			switch c.at {
			case 0:
				require.NoError(t, err)
				require.NoError(t, p.err)
				assert.True(t, a.CRC && p.agreed.CRC)
			case 1:
				require.ErrorAs(t, err, &mismatch)
				assert.Equal(t, vitcp.ReasonCRC, mismatch.Reason)
			default:
				require.ErrorAs(t, p.err, &mismatch)
				assert.Equal(t, vitcp.ReasonCRC, mismatch.Reason)
				require.ErrorAs(t, err, &rejected)
				assert.Equal(t, vitcp.ReasonCRC, rejected.Reason)
			}
			closeAll(outcome{a, err}, p)
		})
	}
}
