package mpa

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const nn = NotNegotiated

func TestAnswerDepths(t *testing.T) { // RFC 6581 9.1, Responder
	for _, tc := range []struct {
		name           string
		own            depths
		reqIRD, reqORD uint16
		local          depths
		repIRD, repORD uint16
	}{
		{"equal", depths{4, 4}, 4, 4, depths{4, 4}, 4, 4},
		{"own ORD bounded by the Initiator's IRD", depths{8, 8}, 3, 5, depths{8, 3}, 8, 3},
		{"own ORD already below", depths{8, 2}, 3, 5, depths{8, 2}, 8, 2},
		{"own IRD below the Initiator's ORD is stated as it is", depths{2, 8}, 8, 5, depths{2, 8}, 2, 8},
		{"Initiator serves no Reads", depths{8, 8}, 0, 5, depths{8, 0}, 8, 0},
		{"Initiator's ORD not negotiated", depths{8, 8}, 4, nn, depths{8, 4}, nn, 4},
		{"Initiator's IRD not negotiated", depths{8, 8}, nn, 4, depths{8, 8}, 8, nn},
		{"neither negotiated", depths{8, 7}, nn, nn, depths{8, 7}, nn, nn},
		{"largest depth", depths{nn - 1, nn - 1}, nn - 1, nn - 1, depths{nn - 1, nn - 1}, nn - 1, nn - 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			local, repIRD, repORD := answerDepths(tc.own, tc.reqIRD, tc.reqORD)
			assert.Equal(t, tc.local, local)
			assert.Equal(t, tc.repIRD, repIRD)
			assert.Equal(t, tc.repORD, repORD)
		})
	}
}

func TestSettleDepths(t *testing.T) { // RFC 6581 9.1, Initiator
	for _, tc := range []struct {
		name           string
		own            depths
		repIRD, repORD uint16
		local          depths
		ok             bool
	}{
		{"equal", depths{4, 4}, 4, 4, depths{4, 4}, true},
		{"own ORD bounded by the Responder's IRD", depths{4, 9}, 3, 4, depths{4, 3}, true},
		{"Responder's IRD above own ORD", depths{4, 2}, 9, 4, depths{4, 2}, true},
		{"Responder's ORD below own IRD", depths{4, 2}, 9, 1, depths{4, 2}, true},
		{"Responder's ORD above own IRD", depths{4, 2}, 9, 5, depths{4, 2}, false},
		{"no Reads either way", depths{0, 0}, 0, 0, depths{0, 0}, true},
		{"Responder's IRD not negotiated", depths{4, 9}, nn, 4, depths{4, 9}, true},
		{"Responder's ORD not negotiated", depths{4, 9}, 3, nn, depths{4, 3}, true},
		{"neither negotiated", depths{0, 9}, nn, nn, depths{0, 9}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			local, ok := settleDepths(tc.own, tc.repIRD, tc.repORD)
			assert.Equal(t, tc.ok, ok)
			assert.Equal(t, tc.local, local)
		})
	}
}

// Whatever both sides want, the outcome meets 9.1: neither has more Reads
// outstanding than the other serves.
func TestDepthsAgree(t *testing.T) {
	r := newRand()
	for range 5000 {
		ini := depths{r.IntN(20), r.IntN(20)}
		res := depths{r.IntN(20), r.IntN(20)}
		resLocal, repIRD, repORD := answerDepths(res, uint16(ini.ird), uint16(ini.ord))
		iniLocal, ok := settleDepths(ini, repIRD, repORD)
		require.True(t, ok, "two of us always come to terms")
		require.LessOrEqual(t, iniLocal.ord, resLocal.ird)
		require.LessOrEqual(t, resLocal.ord, iniLocal.ird)
	}
}

func TestAnswerRTR(t *testing.T) { // RFC 6581 9.2, Responder
	for _, tc := range []struct{ own, offered, want RTR }{
		{RTRWrite | RTRRead, RTRWrite | RTRRead, RTRWrite | RTRRead},
		{RTRWrite | RTRRead, RTRRead, RTRRead},
		{RTRWrite, rtrAll, RTRWrite},
		{RTRWrite | RTRRead, RTRSend, RTRWrite | RTRRead},
		{RTRSend, 0, RTRSend},
	} {
		got := answerRTR(tc.own, tc.offered)
		assert.Equal(t, tc.want, got, "own %v, offered %v", tc.own, tc.offered)
		assert.NotZero(t, got)
	}
}

func TestPickRTR(t *testing.T) { // RFC 6581 9.2, Initiator
	for _, tc := range []struct {
		own, accepted RTR
		ord           int
		want          RTR
	}{
		{rtrAll, rtrAll, 1, RTRWrite},
		{RTRSend | RTRRead, rtrAll, 1, RTRRead},
		{RTRSend | RTRRead, rtrAll, 0, RTRSend},
		{RTRSend, rtrAll, 1, RTRSend},
		{RTRWrite | RTRRead, RTRRead, 1, RTRRead},
		{RTRWrite | RTRRead, RTRRead, 0, 0},
		{RTRWrite, RTRRead | RTRSend, 1, 0},
		{rtrAll, 0, 1, 0},
	} {
		answered := tc.want
		if tc.own&tc.accepted&RTRRead != 0 && tc.ord > 0 {
			answered = RTRRead
		}
		assert.Equal(t, answered, pickRTR(tc.own, tc.accepted, tc.ord, true), "a Read is answered: %+v", tc)
		assert.Equal(t, tc.want, pickRTR(tc.own, tc.accepted, tc.ord, false), "%+v", tc)
	}
}

func TestConfigResolved(t *testing.T) {
	c, err := Config{}.resolved(Initiator)
	require.NoError(t, err)
	assert.Equal(t, Config{Rev: 2, IRD: 16, ORD: 16, RTR: RTRWrite | RTRRead, Timeout: DefaultTimeout}, c)

	c, err = Config{Rev: 1, IRD: -1, ORD: -1, Timeout: -1}.resolved(Responder)
	require.NoError(t, err)
	assert.Equal(t, Config{Rev: 1, RTR: RTRWrite}, c, "without an IRD no Read is accepted")

	for _, tc := range []struct {
		name string
		role Role
		cfg  Config
	}{
		{"revision", Initiator, Config{Rev: 3}},
		{"IRD", Initiator, Config{IRD: NotNegotiated}},
		{"ORD", Responder, Config{ORD: 1 << 20}},
		{"RTR", Initiator, Config{RTR: 8}},
		{"Read without ORD", Initiator, Config{RTR: RTRRead, ORD: -1}},
		{"Read without IRD", Responder, Config{RTR: RTRRead, IRD: -1}},
		{"peer-to-peer with revision 1", Initiator, Config{P2P: true, Rev: 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := tc.cfg.resolved(tc.role)
			assert.Error(t, err)
		})
	}
}

func TestRequestIsEnhancedIfThatGainsSomething(t *testing.T) { // R6581-10-M3
	for _, tc := range []struct {
		cfg  Config
		want bool
	}{
		{Config{}, true},
		{Config{KeepIRD: true}, true},
		{Config{KeepIRD: true, KeepORD: true}, false},
		{Config{KeepIRD: true, KeepORD: true, P2P: true}, true},
		{Config{Rev: 1}, false},
	} {
		c, err := tc.cfg.resolved(Initiator)
		require.NoError(t, err)
		req := c.request()
		assert.Equal(t, tc.want, req.Enhanced, "%+v", tc.cfg)
		if req.Enhanced && c.KeepIRD {
			assert.EqualValues(t, NotNegotiated, req.IRD)
		}
		if req.Enhanced && c.KeepORD {
			assert.EqualValues(t, NotNegotiated, req.ORD)
		}
	}
}
