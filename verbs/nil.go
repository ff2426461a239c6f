package verbs

import (
	"fmt"

	"github.com/softrnic/softrnic/wr"
)

// What verbs say of a handle that is nil: one that was never made, or was made with an error nobody looked at.
var (
	errNilPD  = fmt.Errorf("%w: it is nil: make one with RNIC.AllocatePD", wr.ErrInvalidPD)
	errNilCQ  = fmt.Errorf("%w: it is nil: make one with RNIC.CreateCQ", wr.ErrInvalidCQ)
	errNilSRQ = fmt.Errorf("%w: it is nil: make one with RNIC.CreateSRQ", wr.ErrInvalidSRQ)
	errNilQP  = fmt.Errorf("%w: it is nil: make one with RNIC.CreateQP", wr.ErrInvalidQP)
)
