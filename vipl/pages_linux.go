package vipl

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"unsafe"
)

// permitted tells what may be done with all pages of memory, as they are mapped now. If
// the system does not tell, that is everything.
func permitted(memory []byte) (read, write bool) {
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return true, true
	}
	defer f.Close()
	at := uint64(uintptr(unsafe.Pointer(&memory[0])))
	end := at + uint64(len(memory))
	read, write = true, true
	lines := bufio.NewScanner(f)
	for at < end && lines.Scan() {
		from, to, rights, ok := mapping(lines.Bytes())
		switch {
		case !ok:
			return true, true
		case to <= at:
			continue
		case from > at: // nothing there
			return false, false
		}
		read = read && rights[0] == 'r'
		write = write && rights[1] == 'w'
		at = to
	}
	if lines.Err() != nil {
		return true, true
	}
	covered := at >= end
	return read && covered, write && covered
}

// mapping takes a line of /proc/PID/maps apart: "from-to rwxp ...".
func mapping(line []byte) (from, to uint64, rights []byte, ok bool) {
	first, rest, ok1 := bytes.Cut(line, []byte("-"))
	second, rights, ok2 := bytes.Cut(rest, []byte(" "))
	from, err1 := strconv.ParseUint(string(first), 16, 64)
	to, err2 := strconv.ParseUint(string(second), 16, 64)
	return from, to, rights, ok1 && ok2 && err1 == nil && err2 == nil && len(rights) >= 4
}
