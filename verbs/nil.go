package verbs

import (
	"github.com/softrnic/softrnic/wr"
)

// What verbs say of a handle that is nil: one that was never made, or was made with an error nobody looked at.
var (
	errNilPD  = &wr.Reason{Err: wr.ErrInvalidPD, What: "it is nil", Remedy: "make one with RNIC.AllocatePD"}
	errNilCQ  = &wr.Reason{Err: wr.ErrInvalidCQ, What: "it is nil", Remedy: "make one with RNIC.CreateCQ"}
	errNilSRQ = &wr.Reason{Err: wr.ErrInvalidSRQ, What: "it is nil", Remedy: "make one with RNIC.CreateSRQ"}
	errNilQP  = &wr.Reason{Err: wr.ErrInvalidQP, What: "it is nil", Remedy: "make one with RNIC.CreateQP"}
)
