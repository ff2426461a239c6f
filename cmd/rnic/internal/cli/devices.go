package cli

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/softrnic/softrnic/rdmacore"
)

// Devices are the flags that name the devices of C programs.
type Devices struct {
	texts []string
	file  string // "": none
	// List is what Read has made of them; none: the one of which nothing is said.
	List []rdmacore.Device
}

// AddTo adds both flags to fs.
func (d *Devices) AddTo(fs *pflag.FlagSet) {
	d.AddDevice(fs)
	fs.StringVar(&d.file, "devices", "", "the same from a `FILE`: a device a line, comments behind #")
}

// AddDevice adds --device to fs.
func (d *Devices) AddDevice(fs *pflag.FlagSet) {
	fs.StringArrayVar(&d.texts, "device", nil, "a `DEVICE` in place of softrnic0, repeatable: "+rdmacore.DeviceWords)
}

// From takes the devices of a file too, before those of flags.
func (d *Devices) From(file string) { d.file = file }

// Read reads the file and the flags. roce is what a device is that does not say.
func (d *Devices) Read(roce bool) error {
	d.List = nil
	if d.file != "" {
		text, err := os.ReadFile(d.file)
		if err != nil {
			return WithStatus(2, fmt.Errorf("--devices: %w", err))
		}
		if d.List, err = rdmacore.ParseDevices(string(text), roce); err != nil {
			return WithStatus(2, fmt.Errorf("--devices: %s, %w", d.file, err))
		}
		if len(d.List) == 0 {
			return WithStatus(2, fmt.Errorf("--devices: %s names no device: want a line such as mlx5_0=192.0.2.1,numa=0", d.file))
		}
	}
	for _, text := range d.texts {
		one, err := rdmacore.ParseDevice(text, roce)
		if err != nil {
			return Usagef("--device: %v", err)
		}
		d.List = append(d.List, one)
	}
	return nil
}
