package segment

// Sum is the CRC of what is here, headers and Payload.
func (s *Segment) Sum() CRC { return CRC(0).Add(s.b) }
