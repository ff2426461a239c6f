//go:build linux && cgo && (amd64 || arm64)

package main

import (
	"strings"
	"sync/atomic"

	"github.com/softrnic/softrnic/rdmacore"
	"github.com/softrnic/softrnic/rdmacore/internal/uverbs"
)

// made are the devices once they are there: files that change while the program runs have their texts.
var made atomic.Pointer[[]*uverbs.Device]

// changed is the text of a file of the tree that has become another one since the program began; false: it is as it was.
func changed(s rdmacore.Settings, name string) (string, bool) {
	all := made.Load()
	if all == nil {
		return "", false
	}
	for _, d := range *all {
		folder := "class/infiniband/" + d.Name() + "/ports/1/"
		file, ok := strings.CutPrefix(name, folder)
		if !ok {
			continue
		}
		text, entry, ok := d.Text(file)
		if ok && entry != "" {
			return s.File(folder + entry)
		}
		return text + "\n", ok
	}
	return "", false
}
