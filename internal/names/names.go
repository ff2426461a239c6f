// Package names is what the String methods of constants share: the name of a value, and those of the bits of a set.
package names

import "strconv"

// unsigned are the types of constants.
type unsigned interface {
	~uint8 | ~uint16 | ~uint32 | ~uint64
}

// Of is the name of v, which is the index of it. What has none is Kind(9).
func Of[T unsigned](kind string, names []string, v T) string {
	if uint64(v) < uint64(len(names)) && names[v] != "" {
		return names[v]
	}
	return kind + "(" + strconv.FormatUint(uint64(v), 10) + ")"
}

// Set lists the names of the bits of set, the lowest first. Bits that have no name are left out.
func Set[T unsigned](names []string, set T) []string {
	var all []string
	for i, name := range names {
		if set&(1<<i) != 0 {
			all = append(all, name)
		}
	}
	return all
}
