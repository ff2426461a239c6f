package verbs

import (
	"cmp"
	"errors"
)

// A verb that refuses returns a *Reason: the verb, what it was about, what is allowed, the rule, and what to do. It is
// made where a verb has failed, and nowhere else.

// asRefused makes what a verb returns in err, if that is an Immediate Error, a Reason of the verb, which section of the
// draft has. about is what the verb was about.
func asRefused(err *error, verb, section string, about Reason) {
	*err = refused(*err, verb, section, about)
}

func refused(err error, verb, section string, about Reason) error {
	if err == nil {
		return nil
	}
	var code ImmediateError
	if !errors.As(err, &code) { // a context's
		return err
	}
	why := Reason{Err: err}
	var inner *Reason
	if errors.As(err, &inner) {
		why = *inner // of which there may be one for all
	}
	why.QP = about.QP
	why.Operation = cmp.Or(why.Operation, verb)
	if !why.HasSTag {
		why.STag, why.HasSTag = about.STag, about.HasSTag
	}
	if !why.Asked.Known {
		why.Asked = about.Asked
	}
	why.Rule = cmp.Or(why.Rule, section)
	why.Remedy = cmp.Or(why.Remedy, remedies[code])
	return &why
}

// ofSTag is about a region or window.
func ofSTag(s STag) Reason { return Reason{STag: s, HasSTag: true} }

// remedies are what to do, where it is not said with the refusal.
var remedies = [...]string{
	ErrInsufficientResources: "destroy some that are not needed, or raise the limit in verbs.Config.Limits",
	ErrBlockListNotSupported: "open it with FeatureBlockMode, or in page mode",
	ErrRNICInUse:             "close that one first, or leave Config.ID zero for one that is free",
	ErrInvalidRNIC:           "open another one",
	ErrInvalidPD:             "use one that RNIC.AllocatePD has made and that is there",
	ErrPDInUse:               "destroy and deregister those first",
	ErrTooManyCQE:            "ask for fewer, or raise CQE in verbs.Config.Limits",
	ErrShrinkFailed:          "poll the CQ first, or keep it as it is",
	ErrInvalidCQ:             "use one that RNIC.CreateCQ has made and that is there",
	ErrCQInUse:               "destroy the queue pairs first",
	ErrInvalidEventHandler:   "use one that RNIC.AddCompletionHandler has made and that is there",
	ErrTooManyWR:             "ask for fewer, or raise WR or SRQWR in verbs.Config.Limits",
	ErrTooManySGE:            "ask for fewer, or raise SGE or WriteSGE in verbs.Config.Limits",
	ErrSRQLimitRange:         "choose a limit from 0 to the depth",
	ErrInvalidSRQ:            "use one that RNIC.CreateSRQ has made and that is there",
	ErrSRQInUse:              "destroy those first",
	ErrORDExceeded:           "ask for less",
	ErrIRDExceeded:           "ask for less",
	ErrInvalidQP:             "make one with RNIC.CreateQP",
	ErrCannotChangeAttribute: "make another queue pair, or open the RNIC with the feature",
	ErrInvalidLLPStream:      "connect anew",
	ErrStillFlushing:         "poll the completions of what was posted first",
	ErrRQLimitRange:          "choose a limit from 0 to the depth of the S-RQ",
	ErrWindowsBound:          "invalidate or deallocate those first",
	ErrInvalidVA:             "leave VA zero for the address of the memory",
	ErrInvalidSTag:           "use that of a region or window that is there",
	ErrQueueFull:             "poll the CQ, which makes room",
	ErrRQUsesSRQ:             "post them there",
	ErrInvalidOp:             "post one of the operations of verbs.Op",
	ErrInvalidNotifyType:     "ask for NotifyNext or NotifySolicited",
}
