//go:build release

package dist

import (
	"debug/elf"
	"slices"
	"strings"
)

// glibc is the newest version of glibc of which the program or library needs a symbol, such as {2, 31}, and that symbol's
// name; nil if it needs none. Versions that are no numbers (GLIBC_PRIVATE) are newer than all: no release promises them.
func glibc(f *elf.File) (newest []int, symbol string, err error) {
	symbols, err := f.ImportedSymbols()
	if err != nil {
		return nil, "", err
	}
	for _, s := range symbols {
		text, ok := strings.CutPrefix(s.Version, "GLIBC_")
		if !ok {
			continue
		}
		if v := numbers(text); slices.Compare(v, newest) > 0 {
			newest, symbol = v, s.Name+"@"+s.Version
		}
	}
	return newest, symbol, nil
}
