//go:build linux && (amd64 || arm64)

package uabi

// CreateSRQ and the types below are the structs of the commands of their names, and those with Resp
// what the device answers.
type (
	CreateSRQ struct {
		Response, UserHandle    uint64
		PDHandle                Handle
		MaxWR, MaxSGE, SRQLimit uint32
	}
	CreateSRQResp struct {
		SRQHandle           Handle
		MaxWR, MaxSGE, SRQN uint32
	}

	ModifySRQ struct {
		SRQHandle                 Handle
		AttrMask, MaxWR, SRQLimit uint32
	}

	QuerySRQ struct {
		Response  uint64
		SRQHandle Handle
		Reserved  uint32
	}
	QuerySRQResp struct{ MaxWR, MaxSGE, SRQLimit, Reserved uint32 }

	DestroySRQ struct {
		Response  uint64
		SRQHandle Handle
		Reserved  uint32
	}
	DestroySRQResp struct{ EventsReported uint32 }
)
