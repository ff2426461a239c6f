package tcpsock

// Heard is what TCP knows of whether the peer is there: not its program, but its system, which acknowledges though the program
// does not read.
type Heard struct {
	// Owes says that something has been sent, or is to be, that the peer has not acknowledged.
	Owes bool
	// Tries counts what was sent again, and the probes, since anything has come that acknowledges something.
	Tries int
	// Answers counts what has come, but octets that had come before: a system whose adapter hears nothing sends those again.
	Answers uint64
	// Closed says that the peer's FIN has come, maybe behind octets that nobody has read, or a reset.
	Closed bool
}
