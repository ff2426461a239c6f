package cases

// numbers are the MSNs of the raw peer's last messages on a stream: 0 is none yet. What
// plays a raw peer has them in it.
type numbers struct {
	sends, reads uint32 // on queue 0, and on queue 1
}

// nextSend is the MSN of the peer's next Send, which it counts.
func (n *numbers) nextSend() uint32 {
	n.sends++
	return n.sends
}

// nextRead is the MSN of the peer's next RDMA Read Request, which it counts.
func (n *numbers) nextRead() uint32 {
	n.reads++
	return n.reads
}

// renumber begins with a new stream.
func (n *numbers) renumber() { *n = numbers{} }
