package verbs

import "github.com/softrnic/softrnic/qp"

// MaxOpen is how many RNICs can be open.
const MaxOpen = maxOpen

// Tune gives the queue pairs that the RNIC creates from here on other thresholds of
// the data path.
func Tune(r *RNIC, t qp.Tuning) { r.tuning = t }

// RoundTrip is s as it comes back from package qp.
func RoundTrip(s *StreamConfig) *StreamConfig { return streamOf(s.mpa()) }
