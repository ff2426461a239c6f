package verbs

import (
	"fmt"
	"strconv"

	"github.com/google/uuid"

	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/wr"
)

// Version is the version of this module.
const Version = "0.1.0"

// Attributes are what Query RNIC returns (verbs draft 9.2.1.2).
type Attributes struct {
	ID      uuid.UUID
	Vendor  string
	Version string
	// Mode is what the RNIC was opened in. PageSizes are those of page lists,
	// in octets, if it is PageMode; MinBlock and MaxBlock bound those of block
	// lists if it is BlockMode.
	Mode               Mode
	PageSizes          []uint64
	MinBlock, MaxBlock uint64
	MaxPD              int
	MaxQP              int
	MaxWR              int // outstanding work requests of one queue
	MaxSGE             int // elements of a Send or Receive list
	MaxWriteSGE        int // elements of an RDMA Write list
	MaxCQ              int
	MaxCQE             int // entries of one CQ
	MaxEventHandlers   int // completion event handlers
	MaxSRQ             int // 0 without shared receive queues
	MaxWROfSRQ         int // outstanding receives of one
	MaxMR              int
	MaxMW              int
	MaxPBL             int    // entries of one physical buffer list
	MaxPhysicalMemory  uint64 // octets that AllocPages gives in all
	MaxIRD             int    // of one QP
	MaxORD             int
	MaxIRDShared       int    // of all QPs together; 0: not shared
	MaxORDShared       int    // of all QPs together; 0: not shared
	MaxMessage         uint64 // octets
	MaxPrivateData     int    // octets that MPA carries at connect
	BlockMode          bool   // the RNIC can be opened in block mode
	SharedReceive      bool   // shared receive queues
	DequeueModel       DequeueModel
	ModifyIRD          bool // IRD can be changed after creation
	RaiseORD           bool // ORD can be raised after creation; it can always be lowered
	ModifyQueueSize    bool // of QPs and shared receive queues
	DetectCQOverflow   bool
	CRCDefault         bool
}

// DequeueModel says in which order messages take receives from an S-RQ (verbs
// draft 6.3.5).
type DequeueModel uint8

// The models; zero stands for none, without shared receive queues.
const (
	// ArrivalOrder: each message takes the oldest when its first segment
	// arrives.
	ArrivalOrder DequeueModel = iota + 1
	// SequentialOrder: a message takes one for each message before it too.
	SequentialOrder
)

func (m DequeueModel) String() string {
	switch m {
	case 0:
		return "none"
	case ArrivalOrder:
		return "arrival order"
	case SequentialOrder:
		return "sequential order"
	}
	return "DequeueModel(" + strconv.Itoa(int(m)) + ")"
}

// MarshalText makes JSON show the name.
func (m DequeueModel) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// Query returns the RNIC's attributes. Errors: ErrInvalidRNIC.
func (r *RNIC) Query() (Attributes, error) {
	if err := r.closedError(); err != nil {
		return Attributes{}, fmt.Errorf("query RNIC: %w", err)
	}
	l, has := r.limits, func(f Features) bool { return r.without&f == 0 }
	a := Attributes{
		ID: r.id, Vendor: "softrnic", Version: Version, Mode: r.mode,
		MaxPD: l.PDs, MaxQP: l.QPs, MaxWR: l.WR, MaxSGE: l.SGE, MaxWriteSGE: l.WriteSGE,
		MaxCQ: l.CQs, MaxCQE: l.CQE, MaxEventHandlers: l.EventHandlers,
		MaxSRQ: l.SRQs, MaxWROfSRQ: l.SRQWR,
		MaxMR: l.Regions, MaxMW: l.Windows, MaxPBL: l.PBL, MaxPhysicalMemory: l.Physical,
		MaxIRD: l.IRD, MaxORD: l.ORD, MaxIRDShared: l.SharedIRD, MaxORDShared: l.SharedORD,
		MaxMessage: wr.MaxMessage, MaxPrivateData: 508,
		BlockMode: has(FeatureBlockMode), SharedReceive: has(FeatureSRQ),
		ModifyIRD: has(FeatureChangeIRD), RaiseORD: has(FeatureRaiseORD), ModifyQueueSize: has(FeatureResize),
		DetectCQOverflow: true, CRCDefault: true,
	}
	if has(FeatureSRQ) {
		a.DequeueModel = ArrivalOrder
	}
	if r.mode == BlockMode { // RV-9.2.1.2: either the range or the list
		a.MinBlock, a.MaxBlock = stag.MinBlock, stag.MaxBlock
	} else {
		a.PageSizes = stag.PageSizes()
	}
	return a, nil
}
