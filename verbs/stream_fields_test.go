package verbs_test

import (
	"net"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/verbs"
)

// TestStreamKeepsEveryField on its way to package qp and back.
func TestStreamKeepsEveryField(t *testing.T) {
	a, _ := net.Pipe()
	s := &verbs.StreamConfig{
		Conn: a, Role: 1, CRC: true, MarkersOut: true, MarkersIn: true, Enhanced: true, IRD: 1, ORD: 2,
		PeerIRD: 3, PeerORD: 4, P2P: true, RTR: 5, Nudge: true, EMSS: 6, Early: []byte{7},
		Request: &mpa.Startup{Rev: 1}, Reply: &mpa.Startup{Rev: 2},
	}
	for i, v := 0, reflect.ValueOf(*s); i < v.NumField(); i++ {
		require.False(t, v.Field(i).IsZero(), "%s: set it here", v.Type().Field(i).Name)
	}
	require.Equal(t, s, verbs.RoundTrip(s))
	require.Nil(t, verbs.RoundTrip(nil))
}
