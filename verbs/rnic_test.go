package verbs_test

import (
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

var someID = verbs.RNICID(uuid.MustParse("6ba7b810-9dad-11d1-80b4-00c04fd430c8"))

// TestLimitsOutOfRange: an RNIC is not opened with limits below 1 or above what there is.
func TestLimitsOutOfRange(t *testing.T) {
	for name, l := range map[string]verbs.Limits{
		"SGE": {SGE: 256}, "write SGE": {WriteSGE: 256}, "QPs": {QPs: -1}, "S-RQs": {SRQs: -1}, "WR": {WR: 1<<20 + 1},
		"SRQWR": {SRQWR: 1<<20 + 1}, "regions": {Regions: 1<<22 + 1}, "windows": {Windows: 1<<22 + 1}, "PBL": {PBL: 1<<30 + 1},
		"physical": {Physical: 1<<40 + 1}, "shared": {SharedORD: -1},
	} {
		nic, err := verbs.Open(verbs.Config{Limits: l})
		require.ErrorIs(t, err, verbs.ErrInvalidModifier, name)
		tellsAll(t, err)
		require.Nil(t, nic, name)
	}
}

// TestOpenMany: the process has a bound on open RNICs, and no name is used up by
// the refusal.
func TestOpenMany(t *testing.T) {
	var open []*verbs.RNIC
	for {
		nic, err := verbs.Open(verbs.Config{})
		if err != nil {
			require.ErrorIs(t, err, verbs.ErrInsufficientResources)
			break
		}
		open = append(open, nic)
	}
	assert.Len(t, open, verbs.MaxOpen)
	require.ErrorIs(t, second(verbs.Open(verbs.Config{ID: someID})), verbs.ErrInsufficientResources)
	require.NoError(t, open[0].Close())
	open[0] = nil
	nic, err := verbs.Open(verbs.Config{ID: someID})
	require.NoError(t, err)
	require.NoError(t, nic.Close())
	for _, nic := range open[1:] {
		require.NoError(t, nic.Close())
	}
}

// TestQueryRNIC: every attribute of 9.2.1.2, of an RNIC with nothing asked for,
// one with everything limited, and one without options.
func TestQueryRNIC(t *testing.T) {
	var pages []uint64
	for size := uint64(4096); size <= 1<<30; size *= 2 {
		pages = append(pages, size)
	}
	all := verbs.RNICAttributes{
		Vendor: "softrnic", Version: verbs.Version().Release, Mode: verbs.PageMode, PageSizes: pages,
		Limits: verbs.Limits{
			PDs: 65536, QPs: 65536, WR: 65536, SGE: 32, WriteSGE: 32, CQs: 65536, CQE: 1 << 22,
			EventHandlers: 1024, SRQs: 65536, SRQWR: 65536, Regions: 1 << 20, Windows: 1 << 20, PBL: 1 << 24,
			Physical: 64 << 30, IRD: 4096, ORD: 4096,
		},
		Features:   verbs.FeatureBlockMode | verbs.FeatureSRQ | verbs.FeatureResize | verbs.FeatureChangeIRD | verbs.FeatureRaiseORD,
		MaxMessage: 1<<32 - 1, MaxPrivateData: 508, DequeueModel: verbs.ArrivalOrder, DetectCQOverflow: true, CRCDefault: true, Extensions: true,
	}
	limited := all
	limited.ID, limited.Mode, limited.PageSizes = someID, verbs.BlockMode, nil
	limited.MinBlock, limited.MaxBlock = 1, 1<<30
	limited.Limits = verbs.Limits{
		PDs: 1, QPs: 2, WR: 3, SGE: 4, WriteSGE: 5, CQs: 6, CQE: 7, EventHandlers: 8, SRQs: 9, SRQWR: 10,
		Regions: 11, Windows: 12, PBL: 13, Physical: 14, IRD: 15, ORD: 16, SharedIRD: 17, SharedORD: 18,
	}
	bare := all
	bare.Limits.SRQs, bare.Limits.SRQWR, bare.DequeueModel = 0, 0, 0 // RV-6.3-M4, RV-6.3-M6
	bare.Features = 0
	for name, c := range map[string]struct {
		config verbs.Config
		want   verbs.RNICAttributes
	}{
		"default": {verbs.Config{}, all},
		"limited": {verbs.Config{ID: someID, Mode: verbs.BlockMode, Limits: limited.Limits}, limited},
		"bare": {verbs.Config{Without: verbs.FeatureBlockMode | verbs.FeatureSRQ | verbs.FeatureResize |
			verbs.FeatureChangeIRD | verbs.FeatureRaiseORD}, bare},
	} {
		t.Run(name, func(t *testing.T) {
			nic, err := verbs.Open(c.config)
			require.NoError(t, err)
			defer nic.Close()
			got, err := nic.Query()
			require.NoError(t, err)
			if c.want.ID == (verbs.RNICID{}) {
				assert.Equal(t, uuid.RFC4122, uuid.UUID(got.ID).Variant(), "a random one")
				got.ID = verbs.RNICID{}
			}
			assert.Equal(t, c.want, got)
		})
	}
}

func TestNamesOfAttributes(t *testing.T) {
	for want, v := range map[string]interface{ MarshalText() ([]byte, error) }{
		"page list": verbs.PageMode, "block list": verbs.BlockMode, "Mode(9)": verbs.Mode(9),
		"none": verbs.DequeueModel(0), "arrival order": verbs.ArrivalOrder,
		"DequeueModel(9)": verbs.DequeueModel(9),
	} {
		text, err := v.MarshalText()
		require.NoError(t, err)
		assert.Equal(t, want, string(text))
	}
}

// TestCloseTwiceAtOnce: both return when everything is gone.
func TestCloseTwiceAtOnce(t *testing.T) {
	w := newWorld(t, verbs.Config{ID: someID})
	w.bind()
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			assert.NoError(t, w.nic.Close())
			nic, err := verbs.Open(verbs.Config{ID: someID})
			if err == nil { // the other may have been faster
				assert.NoError(t, nic.Close())
				return
			}
			assert.ErrorIs(t, err, verbs.ErrRNICInUse)
		})
	}
	wg.Wait()
}
