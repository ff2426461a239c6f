package cases

import "github.com/softrnic/softrnic/mpa"

// The arguments of a verbs.StreamConfig: the queue pair's side of the MPA startup, and the
// ready-to-receive frame of the cases' Initiators.
const (
	asInitiator = mpa.Initiator
	asResponder = mpa.Responder
	rtrWrite    = mpa.RTRWrite
)

// side is one of asInitiator and asResponder.
type side = mpa.Role
