package fault

import (
	"github.com/softrnic/softrnic/internal/verbsinternal"
	"github.com/softrnic/softrnic/verbs"
)

// Provoke makes an object fail in a way for which software has no cause of its own: programs want to test what they do about
// it. It returns at once.
//
//   - An RNIC fails as by an RNIC Catastrophic Error (verbs draft figure 25): EventRNICCatastrophic is raised, and nothing
//     after it. Every queue pair with a stream ends it with a Terminate Message, Global Catastrophic Error; the others go to
//     the Error state. From then on the Query verbs and Close work, and what completes can still be polled and waited for;
//     everything else fails with ErrInvalidRNIC.
//   - A queue pair fails as by a Local QP Catastrophic Error (figure 24). A request that is being processed completes with
//     StatusLocalQPCatastrophic, else there is EventLocalQPCatastrophic.
//   - A CQ fails as by a CQ Operation Error (figure 25): EventCQOperation is raised; queue pairs that complete something end
//     with EventCQRQError or EventCQSQOverflow. What is queued can still be polled.
//   - An S-RQ fails as by a Shared Receive Queue Catastrophic Failure (figure 25): EventSRQCatastrophic is raised. A queue pair
//     that wants a receive from then on ends with EventSRQError.
func Provoke[T *verbs.RNIC | *verbs.QP | *verbs.CQ | *verbs.SRQ](object T) {
	switch o := any(object).(type) {
	case *verbs.RNIC:
		verbsinternal.FailRNIC(o)
	case *verbs.QP:
		verbsinternal.FailQP(o)
	case *verbs.CQ:
		verbsinternal.FailCQ(o)
	case *verbs.SRQ:
		verbsinternal.FailSRQ(o)
	}
}

// Unplug takes the RNIC away, of which this is the verbs.Config.Faults: it fails, as Provoke has it, and verbs.Open with this Injector
// fails with verbs.ErrInsufficientResources until Plug. It returns at once.
func (in *Injector) Unplug(nic *verbs.RNIC) {
	if !in.unplugged.Swap(true) {
		verbsinternal.TellFault(nic, "unplug", "the RNIC was unplugged")
		Provoke(nic)
	}
}

// Plug has an RNIC that was unplugged be there again, to be opened. The one that was open stays failed.
func (in *Injector) Plug() { in.unplugged.Store(false) }

// Unplugged reports whether the RNIC is unplugged.
func (in *Injector) Unplugged() bool { return in.unplugged.Load() }
