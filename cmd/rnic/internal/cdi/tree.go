package cdi

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/softrnic/softrnic/rdmacore"
)

// tree is the name of the folder of files of a device without an address. It ends with a number that grows when the files
// change: what running containers have stays as it is.
const tree = "softrnic-sysfs-1"

// makeTree makes it in folder, in one step, unless it is there.
func makeTree(folder string) (err error) {
	where := filepath.Join(folder, tree)
	if _, err := os.Stat(where); err == nil {
		return nil
	}
	made, err := os.MkdirTemp(folder, "."+tree+".*")
	if err != nil {
		return fmt.Errorf("%w; run this once as a user who may write there", err)
	}
	if err = rdmacore.WriteTemplate(made); err == nil {
		err = os.Rename(made, where)
	}
	if err != nil {
		err = errors.Join(err, os.RemoveAll(made))
	}
	if _, there := os.Stat(where); there == nil { // maybe made by another process meanwhile
		return nil
	}
	return err
}
