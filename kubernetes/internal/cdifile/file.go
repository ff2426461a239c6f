package cdifile

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"tags.cncf.io/container-device-interface/pkg/cdi"
	"tags.cncf.io/container-device-interface/pkg/parser"
	specs "tags.cncf.io/container-device-interface/specs-go"
)

// File is a CDI file of this plug-in's. There is one for a kind of device; its owner is the plug-in that was started
// last.
type File struct {
	dir, vendor, class string
	n                  int
	written            []byte // what the file has to have; nil: not written yet
}

// NewFile is the file for n devices of a kind, such as softrnic.io/rnic, in dir.
func NewFile(dir, kind string, n int) (*File, error) {
	vendor, class := parser.ParseQualifier(kind)
	if err := parser.ValidateVendorName(vendor); err != nil {
		return nil, fmt.Errorf("CDI kind %q, want VENDOR/CLASS: %w", kind, err)
	}
	if err := parser.ValidateClassName(class); err != nil {
		return nil, fmt.Errorf("CDI kind %q, want VENDOR/CLASS: %w", kind, err)
	}
	return &File{dir: dir, vendor: vendor, class: class, n: n}, nil
}

// Path is where the file is.
func (f *File) Path() string {
	return filepath.Join(f.dir, cdi.GenerateSpecName(f.vendor, f.class)+".json")
}

// Ensure writes the file if it is not there or not as it should be. It stays when the plug-in ends: a container that
// has a device may be started again without the plug-in.
func (f *File) Ensure(e Edits) error {
	if now, err := os.ReadFile(f.Path()); err == nil && f.written != nil && bytes.Equal(now, f.written) {
		return nil
	}
	spec := &specs.Spec{Kind: f.vendor + "/" + f.class, ContainerEdits: e.all}
	for i := range f.n {
		spec.Devices = append(spec.Devices, specs.Device{Name: strconv.Itoa(i), ContainerEdits: e.one})
	}
	version, err := specs.MinimumRequiredVersion(spec)
	if err != nil {
		return fmt.Errorf("the CDI file: %w", err)
	}
	spec.Version = version
	cache, err := cdi.NewCache(cdi.WithSpecDirs(f.dir), cdi.WithAutoRefresh(false))
	if err != nil {
		return fmt.Errorf("the CDI file: %w", err)
	}
	if err := cache.WriteSpec(spec, filepath.Base(f.Path())); err != nil {
		return fmt.Errorf("writing %s: %w", f.Path(), err)
	}
	if f.written, err = os.ReadFile(f.Path()); err != nil {
		return fmt.Errorf("reading what was written: %w", err)
	}
	return nil
}

// Response is the devices by their CDI names.
func (f *File) Response(ids []string) *api.ContainerAllocateResponse {
	r := &api.ContainerAllocateResponse{}
	for _, id := range ids {
		r.CdiDevices = append(r.CdiDevices, &api.CDIDevice{Name: parser.QualifiedName(f.vendor, f.class, id)})
	}
	return r
}
