package verbs

import (
	"github.com/softrnic/softrnic/internal/names"
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/wr"
)

// RNICAttributes are what Query RNIC returns (verbs draft 9.2.1.2).
type RNICAttributes struct {
	ID      RNICID
	Vendor  string
	Version string
	// Mode is what the RNIC was opened in. PageSizes are those of page lists,
	// in octets, if it is PageMode; MinBlock and MaxBlock bound those of block
	// lists if it is BlockMode.
	Mode               Mode
	PageSizes          []uint64
	MinBlock, MaxBlock uint64
	// Limits are those of Config, with their defaults. Without FeatureSRQ those
	// of shared receive queues are 0.
	Limits Limits
	// Features are those that the RNIC has: all but Config.Without.
	Features         Features
	DequeueModel     DequeueModel // 0 without FeatureSRQ
	DetectCQOverflow bool
	CRCDefault       bool
	Extensions       bool   // RFC 7306, for queue pairs with QPConfig.Extensions
	MaxMessage       uint64 // octets
	MaxPrivateData   int    // octets that MPA carries at connect
}

// DequeueModel says in which order messages take receives from an S-RQ (verbs
// draft 6.3.5).
type DequeueModel uint8

// The model of this RNIC; zero stands for none, without shared receive queues.
const (
	// ArrivalOrder: each message takes the oldest when its first segment
	// arrives.
	ArrivalOrder DequeueModel = iota + 1
)

func (m DequeueModel) String() string {
	return names.Of("DequeueModel", []string{0: "none", ArrivalOrder: "arrival order"}, m)
}

// MarshalText makes JSON show the name.
func (m DequeueModel) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// Query returns the RNIC's attributes. Errors: ErrInvalidRNIC.
func (r *RNIC) Query() (RNICAttributes, error) {
	if err := r.closedError(); err != nil {
		return RNICAttributes{}, refused(err, "Query RNIC", "verbs draft 9.2.1.2", Reason{})
	}
	a := RNICAttributes{
		ID: r.id, Vendor: "softrnic", Version: release, Mode: r.mode,
		Limits: r.limits, Features: allFeatures &^ r.without,
		DetectCQOverflow: true, CRCDefault: true, Extensions: true,
		MaxMessage: wr.MaxMessage, MaxPrivateData: 508,
	}
	if a.Features.Has(FeatureSRQ) {
		a.DequeueModel = ArrivalOrder
	}
	if r.mode == BlockMode { // RV-9.2.1.2: either the range or the list
		a.MinBlock, a.MaxBlock = stag.MinBlock, stag.MaxBlock
	} else {
		a.PageSizes = stag.PageSizes()
	}
	return a, nil
}
