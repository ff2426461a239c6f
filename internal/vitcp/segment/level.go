package segment

import "strconv"

// Level is the reliability level of a VI and its connection (VI Architecture 2.5). Both ends have the same (VT-3.3-M1).
type Level uint8

// The three levels.
const (
	Unreliable Level = iota
	ReliableDelivery
	ReliableReception
	numLevels
)

var levelNames = [numLevels]string{
	Unreliable:        "Unreliable Delivery",
	ReliableDelivery:  "Reliable Delivery",
	ReliableReception: "Reliable Reception",
}

func (l Level) String() string {
	if l < numLevels {
		return levelNames[l]
	}
	return "Level(" + strconv.Itoa(int(l)) + ")"
}
