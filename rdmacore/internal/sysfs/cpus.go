package sysfs

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// maxCPU bounds the numbers of processors, as Linux does (NR_CPUS).
const maxCPU = 8192

// CPUsOf is the list of processors next to a NUMA node of the host whose /sys is below root, and whether the host has that node; else
// it is the list of all that are online, which the kernel tells of devices that are next to none.
func CPUsOf(root string, node int) (list string, there bool) {
	read := func(name string) string {
		text, _ := os.ReadFile(filepath.Join(root, "sys", "devices", "system", name))
		return strings.TrimSpace(string(text))
	}
	if node >= 0 {
		if list = read(fmt.Sprintf("node/node%d/cpulist", node)); list != "" {
			return list, true
		}
	}
	if list = read("cpu/online"); list == "" {
		list = "0"
	}
	return list, false
}

// mask is a list of processors, such as 0-3,8, as a mask in groups of 32 bits, the highest first.
func mask(list string) string {
	groups := []uint32{0}
	for part := range strings.SplitSeq(list, ",") {
		first, last, isRange := strings.Cut(part, "-")
		a, err := strconv.Atoi(first)
		if err != nil {
			continue
		}
		b := a
		if isRange {
			if b, err = strconv.Atoi(last); err != nil {
				continue
			}
		}
		for n := max(a, 0); n <= b && n < maxCPU; n++ {
			for len(groups) <= n/32 {
				groups = append(groups, 0)
			}
			groups[n/32] |= 1 << (n % 32)
		}
	}
	var text []string
	for i := len(groups) - 1; i >= 0; i-- {
		text = append(text, fmt.Sprintf("%08x", groups[i]))
	}
	return strings.Join(text, ",")
}
