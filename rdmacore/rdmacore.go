// Package rdmacore is the front door of the wing that carries C programs of rdma-core over softrnic: what starts a
// program, and what the program's engine reads when its first device is opened. It is for `rnic run` and the engine; other
// programs start `rnic run`. docs/c-programs.md says what works.
//
// The wing, in the order in which a verb of a C program goes through it:
//
//	preload            C: takes the calls of libc that open, read, write, poll and map the devices
//	clib               the shared library that preload loads: the C calls as Go calls
//	internal/uverbs    the device uverbs0: each command of Linux's user ABI over package verbs
//	internal/ucma      the device rdma_cm: each command over package cm
//	internal/uabi      the structs of the two devices (Linux's user ABI)
//	internal/umem      the memory of the program, by address
//	internal/udwire    the datagrams that carry UD queue pairs between softrnics
//	internal/sysfs     the files of /sys in which rdma-core finds the device
//	build              makes the two libraries
package rdmacore

import (
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/softrnic/softrnic/rdmacore/internal/sysfs"
)

// The libraries that build makes.
const (
	EngineLibrary  = "libsoftrnic-engine.so"
	PreloadLibrary = "libsoftrnic-preload.so"
)

// Settings are what a program's engine is told, in the environment. A file name of "" is none. Addr and RoCE are of no account where
// there are Devices.
type Settings struct {
	// Engine is the path of EngineLibrary, which the preload library loads.
	Engine string
	// Addr is the device's address, one of this host's. Invalid: HostAddress chooses, when the device is first used.
	Addr netip.Addr
	// RoCE presents a RoCE adapter; else an RNIC.
	RoCE bool
	// Devices are what the program finds; none: one, softrnic0, with Addr and RoCE.
	Devices []Device
	// CRC asks peers for CRCs.
	CRC bool
	// Strace is a file that commands are appended to, as lines.
	Strace string
	// Faults is a file with a fault plan (docs/lab.md).
	Faults string
	// Pcap is a file that a capture is appended to, with the octets of the program if PcapPayload.
	Pcap        string
	PcapPayload bool
	// Trace is a file that records of package trace are appended to.
	Trace string
	// Stats offers the counters on a socket (docs/counters.md).
	Stats bool
}

// Names of the variables.
const (
	envEngine  = "SOFTRNIC_ENGINE" // preload/engine.c reads it
	envTree    = "SOFTRNIC_TREE"   // preload/path.c reads it
	envAddr    = "SOFTRNIC_ADDR"
	envDevices = "SOFTRNIC_DEVICES" // one behind the other, with a blank between
	envAs      = "SOFTRNIC_AS"
	envCRC     = "SOFTRNIC_CRC"
	envStrace  = "SOFTRNIC_STRACE"
	envFaults  = "SOFTRNIC_FAULTS"
	envPcap    = "SOFTRNIC_PCAP"
	envPayload = "SOFTRNIC_PCAP_PAYLOAD"
	envTrace   = "SOFTRNIC_TRACE"
	envStats   = "SOFTRNIC_STATS"
)

// Environment is the settings as variables: name, value. FromEnvironment reads them.
func (s Settings) Environment() [][2]string {
	addr := ""
	if s.Addr.IsValid() {
		addr = s.Addr.String()
	}
	pick := func(on bool, yes, no string) string {
		if on {
			return yes
		}
		return no
	}
	devices := make([]string, len(s.Devices))
	for i, d := range s.Devices {
		devices[i] = d.String()
	}
	return [][2]string{
		{envEngine, s.Engine},
		{envAddr, addr},
		{envDevices, strings.Join(devices, " ")},
		{envAs, pick(s.RoCE, "roce", "iwarp")},
		{envCRC, pick(s.CRC, "on", "off")},
		{envStrace, s.Strace},
		{envFaults, s.Faults},
		{envPcap, s.Pcap},
		{envPayload, pick(s.PcapPayload, "on", "off")},
		{envTrace, s.Trace},
		{envStats, pick(s.Stats, "on", "off")},
	}
}

// FromEnvironment is the settings of a process whose environment get looks up, as os.Getenv does. An error names the variable
// and what it may be. What is not set is as `rnic run` has it without flags.
func FromEnvironment(get func(name string) string) (Settings, error) {
	s := Settings{
		Engine: get(envEngine), Strace: get(envStrace), Faults: get(envFaults), Pcap: get(envPcap), Trace: get(envTrace),
	}
	var err error
	if addr := get(envAddr); addr != "" {
		if s.Addr, err = netip.ParseAddr(addr); err != nil || s.Addr.Zone() != "" {
			return s, fmt.Errorf("%s is %q; want an address of this host, such as 192.0.2.1 or 2001:db8::1", envAddr, addr)
		}
		s.Addr = s.Addr.Unmap()
	}
	for text := range strings.FieldsSeq(get(envDevices)) {
		d, err := ParseDevice(text, false)
		if err != nil {
			return s, fmt.Errorf("%s: %w", envDevices, err)
		}
		s.Devices = append(s.Devices, d)
	}
	for _, v := range []struct {
		name, unset, other string
		set                *bool
		is                 bool // what other sets it to
	}{
		{envAs, "iwarp", "roce", &s.RoCE, true},
		{envCRC, "on", "off", &s.CRC, false},
		{envPayload, "off", "on", &s.PcapPayload, true},
		{envStats, "off", "on", &s.Stats, true},
	} {
		switch text := get(v.name); text {
		case "", v.unset:
			*v.set = !v.is
		case v.other:
			*v.set = v.is
		default:
			return s, fmt.Errorf("%s is %q; want %s or %s", v.name, text, v.unset, v.other)
		}
	}
	return s, nil
}

// WriteTree makes the files in which rdma-core finds the devices, in dir, an empty folder that SYSFS_PATH leads to. Resolve has
// filled them in. Any user can read the files: a program may change its own before it opens a device.
func (s Settings) WriteTree(dir string) error {
	configs, err := s.configs()
	if err != nil {
		return err
	}
	if err := sysfs.Write(dir, "/", configs); err != nil {
		return err
	}
	// The umask may keep others out.
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return os.Chmod(path, 0o755) //nolint:gosec // G302: nothing in it is secret
		case d.Type().IsRegular():
			return os.Chmod(path, 0o444) //nolint:gosec // G302: the same
		}
		return nil
	})
}

// File is the text of one of those files, by its name below the folder, that of a device by its name below class/infiniband; false if
// there is no such file.
func (s Settings) File(name string) (string, bool) {
	configs, err := s.configs()
	if err != nil {
		return "", false
	}
	return sysfs.Text(configs, name)
}

func (s Settings) configs() (list []sysfs.Config, err error) {
	for i, d := range s.Devices {
		c := sysfs.Config{
			Name: d.Name, Number: i, GIDs: d.Addrs(), GUID: d.GUID(), RoCE: d.RoCE, Interface: d.Interface, PCI: d.PCI, NUMA: d.NUMA,
		}
		if c.Rate, err = sysfs.RateOf(d.Rate); err != nil {
			return nil, fmt.Errorf("device %s: %w", d.Name, err)
		}
		c.CPUs, _ = d.CPUs()
		list = append(list, c)
	}
	return list, nil
}

// WriteTemplate makes the files of a device that has no address yet, in dir, an empty folder: what Templated leads programs to,
// in as many networks as there are. What depends on the address there, the engine says in place of the file.
func WriteTemplate(dir string) error {
	s := Settings{Addr: netip.IPv6Unspecified()}
	s.Devices = []Device{s.one()}
	return s.WriteTree(dir)
}

// Templated is the environment, name and value, of programs that start without `rnic run`, whose engine chooses the address: the
// paths, of the program's file system, are those of the two libraries and of a folder of WriteTemplate.
func Templated(preload, engine, tree string) [][2]string {
	return [][2]string{{"LD_PRELOAD", preload}, {envEngine, engine}, {envTree, tree}}
}
