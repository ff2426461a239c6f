package verbs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/softrnic/softrnic/internal/names"
	"github.com/softrnic/softrnic/wr"
)

// Config configures an RNIC. The zero value opens a new, unnamed one.
type Config struct {
	// ID names the instance, which can be open once in a process; the zero
	// UUID stands for a random one.
	ID RNICID
	// Name is what people call it, if they do: counters are shown with it.
	Name string
	// Mode is the Physical Block List mode (verbs draft 5.1.2).
	Mode Mode
	// Without takes optional features away, so that a program can test what it
	// does without them.
	Without Features
	// Limits bound what the RNIC hands out; zero fields have defaults.
	Limits Limits
	// Faults, if set, makes things go wrong on purpose: a *fault.Injector of package lab/fault. Streams take the
	// way of any net.Conn then.
	Faults FaultInjector
	// Tap, if set, captures what goes over each stream: a *tap.Tap of package lab/tap. Streams take the way of any
	// net.Conn then.
	Tap Tap
	// Trace, if set, takes what the RNIC does, record by record and where it does it: by its goroutines and the
	// program's, several at a time, with locks held. It must not block, and call no verb. Package lab/trace keeps,
	// writes and shows records.
	Trace func(Record)
}

// Mode says what the Physical Buffer Lists of an RNIC are lists of (verbs draft
// 7.6.2).
type Mode uint8

// The modes.
const (
	// PageMode: pages, of a power of two in size and aligned to it.
	PageMode Mode = iota
	// BlockMode: blocks of any size and alignment.
	BlockMode
)

func (m Mode) String() string {
	return names.Of("Mode", []string{PageMode: "page list", BlockMode: "block list"}, m)
}

// MarshalText makes JSON show the name.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// Features is a set of what the draft leaves optional.
type Features uint8

// The features.
const (
	// FeatureBlockMode: the RNIC can be opened in block mode (7.6.2).
	FeatureBlockMode Features = 1 << iota
	// FeatureSRQ: Shared Receive Queues (6.3).
	FeatureSRQ
	// FeatureResize: Modify QP and Modify S-RQ can change how many work
	// requests may be outstanding (6.1.3, 6.3.2).
	FeatureResize
	// FeatureChangeIRD: Modify QP can change IRD (6.5).
	FeatureChangeIRD
	// FeatureRaiseORD: Modify QP can raise ORD; it can always lower it (6.5).
	FeatureRaiseORD
	featureEnd

	allFeatures = featureEnd - 1
)

var featureNames = [...]string{"block mode", "S-RQ", "resize queues", "change IRD", "raise ORD"}

// Has reports whether all of f2 are in f.
func (f Features) Has(f2 Features) bool { return f&f2 == f2 }

// String lists the features.
func (f Features) String() string {
	all := names.Set(featureNames[:], f)
	if rest := f &^ allFeatures; rest != 0 {
		all = append(all, fmt.Sprintf("0x%x", uint8(rest)))
	}
	return cmp.Or(strings.Join(all, ", "), "none")
}

// MarshalText makes JSON show the names.
func (f Features) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// Limits bound an RNIC's resources. Each zero field stands for its default; a
// field is at least 1 otherwise, and at most what is said.
type Limits struct {
	PDs           int    // protection domains; 65,536
	QPs           int    // queue pairs; 65,536
	WR            int    // work requests of one queue, to 1,048,576; 65,536
	SGE           int    // elements of a Send or Receive list, 4 to 255; 32
	WriteSGE      int    // elements of an RDMA Write list, to 255; as SGE
	CQs           int    // completion queues; 65,536
	CQE           int    // entries of one completion queue; 4,194,304
	EventHandlers int    // completion event handlers; 1,024
	SRQs          int    // shared receive queues; 65,536
	SRQWR         int    // receives of one, to 1,048,576; 65,536
	Regions       int    // memory regions, to 4,194,304; 1,048,576
	Windows       int    // memory windows, to 4,194,304; 1,048,576
	PBL           int    // entries of one physical buffer list, to 1<<30; 16,777,216
	Physical      uint64 // octets of AllocatePages together, to 1 TiB; 64 GiB
	IRD           int    // inbound RDMA Reads of one queue pair; 4,096
	ORD           int    // outbound RDMA Reads of one queue pair; 4,096
	// SharedIRD and SharedORD, if not 0, bound the sum of IRD and of ORD over
	// all queue pairs: the resources come from pools of the RNIC (6.5). Each
	// is at least QPs.
	SharedIRD, SharedORD int
}

const (
	maxWR  = 1 << 20
	maxSGE = 255
	// What package stag has at most.
	maxSTags    = 1 << 22
	maxPBL      = 1 << 30
	maxPhysical = 1 << 40
)

func (l Limits) withDefaults(without Features) Limits {
	l.PDs = cmp.Or(l.PDs, 1<<16)
	l.QPs = cmp.Or(l.QPs, 1<<16)
	l.WR = cmp.Or(l.WR, 1<<16)
	l.SGE = cmp.Or(l.SGE, 32)
	l.WriteSGE = cmp.Or(l.WriteSGE, l.SGE)
	l.CQs = cmp.Or(l.CQs, 1<<16)
	l.CQE = cmp.Or(l.CQE, 1<<22)
	l.EventHandlers = cmp.Or(l.EventHandlers, 1<<10)
	l.SRQs = cmp.Or(l.SRQs, 1<<16)
	l.SRQWR = cmp.Or(l.SRQWR, 1<<16)
	l.Regions = cmp.Or(l.Regions, 1<<20)
	l.Windows = cmp.Or(l.Windows, 1<<20)
	l.PBL = cmp.Or(l.PBL, 1<<24)
	l.IRD = cmp.Or(l.IRD, 1<<12)
	l.ORD = cmp.Or(l.ORD, 1<<12)
	l.Physical = cmp.Or(l.Physical, 64<<30)
	if without&FeatureSRQ != 0 { // RV-6.3-M4, RV-6.3-M6
		l.SRQs, l.SRQWR = 0, 0
	}
	return l
}

// check finds what is wrong with c, whose limits are l.
func (c Config) check(l Limits) error {
	switch {
	case c.Mode > BlockMode:
		return &wr.Reason{
			Err: wr.ErrInvalidModifier, What: fmt.Sprintf("there is no mode %d", c.Mode), Remedy: "open it in PageMode or BlockMode",
		}
	case c.Mode == BlockMode && c.Without&FeatureBlockMode != 0:
		return &wr.Reason{Err: wr.ErrBlockListNotSupported, What: "the RNIC is without FeatureBlockMode"}
	case c.ID != (RNICID{}) && uuid.UUID(c.ID).Variant() != uuid.RFC4122: // RFC 9562 4.1
		return &wr.Reason{
			Err: wr.ErrInvalidModifier, What: fmt.Sprintf("%v is no UUID of the variant of RFC 9562", c.ID),
			Remedy: "use one of NewRNICID, or leave Config.ID zero",
		}
	case !l.valid(c.Without):
		return &wr.Reason{
			Err: wr.ErrInvalidModifier, What: fmt.Sprintf("a limit is out of its range: %+v", l),
			Remedy: "choose what verbs.Limits says, or leave it zero for the default",
		}
	}
	return nil
}

func (l Limits) valid(without Features) bool {
	positive := []int{
		l.PDs, l.QPs, l.WR, l.WriteSGE, l.CQs, l.CQE, l.EventHandlers, // RV-9.4.1: one handler at least
		l.Regions, l.Windows, l.PBL, l.IRD, l.ORD, // RV-6.5-M11: 1 at least
	}
	if without&FeatureSRQ == 0 {
		positive = append(positive, l.SRQs, l.SRQWR)
	}
	shared := func(n int) bool { return n == 0 || n >= l.QPs } // RV-6.5-M12
	return slices.Min(positive) >= 1 && l.WR <= maxWR && l.SRQWR <= maxWR &&
		l.Regions <= maxSTags && l.Windows <= maxSTags && l.PBL <= maxPBL && l.Physical <= maxPhysical &&
		l.SGE >= 4 && l.SGE <= maxSGE && l.WriteSGE <= maxSGE && // draft 8.1.3.2: four elements at least
		shared(l.SharedIRD) && shared(l.SharedORD)
}

// checkReads finds RDMA Reads above the limits, of a queue pair that is created or modified.
func (l Limits) checkReads(ird, ord int) error {
	return cmp.Or(atMost(wr.ErrIRDExceeded, ird, l.IRD), atMost(wr.ErrORDExceeded, ord, l.ORD))
}

// atMost refuses what is above a limit with err.
func atMost(err error, n, most int) error {
	if n > most {
		return &wr.Reason{Err: err, What: fmt.Sprintf("%d, at most %d", n, most)}
	}
	return nil
}
