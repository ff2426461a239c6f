package rdmacore

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestParseDevice: each form, and that String is read as what it was.
func TestParseDevice(t *testing.T) {
	base := Device{Name: "mlx5_0", NUMA: -1, Rate: 100, MTU: 4096, Ports: 1}
	with := func(change func(*Device)) Device {
		d := base
		change(&d)
		return d
	}
	for _, tt := range []struct {
		text string
		roce bool
		want Device
	}{
		{"mlx5_0", false, base},
		{"mlx5_0", true, with(func(d *Device) { d.RoCE = true })},
		{"mlx5_0,as=iwarp", true, base},
		{"mlx5_0=192.0.2.1,as=roce", false, with(func(d *Device) { d.Addr, d.RoCE = netip.MustParseAddr("192.0.2.1"), true })},
		{"mlx5_0=2001:db8::1,gid=::ffff:192.0.2.1,gid=fe80::1%eth0", false, with(func(d *Device) {
			d.Addr, d.GIDs = netip.MustParseAddr("2001:db8::1"), []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("fe80::1%eth0")}
		})},
		{"mlx5_0=eth0,numa=1", false, with(func(d *Device) { d.Interface, d.NUMA = "eth0", 1 })},
		{"mlx5_0,netdev=eth0,port-rate=400G,mtu=1024,ports=1", false, with(func(d *Device) { d.Interface, d.Rate, d.MTU = "eth0", 400, 1024 })},
		{"mlx5_0,pci=0000:3B:00.1,qps=5,cqs=6,mrs=7", false, with(func(d *Device) { d.PCI, d.QPs, d.CQs, d.MRs = "0000:3b:00.1", 5, 6, 7 })},
	} {
		got, err := ParseDevice(tt.text, tt.roce)
		require.NoError(t, err, tt.text)
		assert.Equal(t, tt.want, got, tt.text)
		again, err := ParseDevice(got.String(), !tt.roce)
		require.NoError(t, err, got)
		assert.Equal(t, got, again, got)
	}
}

func TestParseDeviceRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                      `"" is no name`,
		"a/b=192.0.2.1":         `"a/b" is no name`,
		"..":                    `".." is no name`,
		"mlx5_0:1":              "is no name of a device: want letters",
		strings.Repeat("x", 64): "at most 63",
		"a=":                    `"" is no address`,
		"a=192.0.2.999:1":       "is no address",
		"a=0.0.0.0":             "no address of a host",
		"a=fe80::1%x y":         "has a blank in it",
		"a,":                    `there is no ""`,
		"a,rate=100g":           `there is no "rate=100g"; want NAME`,
		"a,as=ib":               "want iwarp or roce",
		"a,port-rate=99g":       "there are ports of 1g, 10g",
		"a,port-rate=0":         "there are ports of",
		"a,numa=x":              "want the number of a NUMA node",
		"a,pci=3b:00.0":         "such as 0000:3b:00.0",
		"a,mtu=1500":            "want 256, 512",
		"a,ports=2":             "take a second --device",
		"a,gid=x":               "want an address",
		"a,netdev=":             "no network interface",
		"a,qps=0":               "want a number from 1",
	} {
		_, err := ParseDevice(text, false)
		assert.ErrorContains(t, err, want, text)
	}
	_, err := ParseDevices("# none\n\na=192.0.2.1 # one\nb,numa=z\n", false)
	assert.ErrorContains(t, err, "line 4: device b: numa=z")
	list, err := ParseDevices("# none\n\na=192.0.2.1 # one\n b\n", true)
	require.NoError(t, err)
	require.Len(t, list, 2)
	assert.True(t, list[0].RoCE && list[1].RoCE)
	assert.Equal(t, "b", list[1].Name)
}

func FuzzParseDevice(f *testing.F) {
	f.Add("a=fe80::1%x y")
	f.Add("mlx5_0=eth0,as=roce,port-rate=100g,numa=0,pci=0000:3b:00.0,mtu=4096,ports=1,gid=::1")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseDevice(text, false)
		if err != nil {
			return
		}
		again, err := ParseDevice(d.String(), true)
		require.NoError(t, err)
		require.Equal(t, d, again)
		require.NotContains(t, d.String(), " ") // the variable has blanks between devices
	})
}

func TestResolve(t *testing.T) {
	parse := netip.MustParseAddr
	host := []Address{
		{parse("127.0.0.1"), "lo"}, {parse("192.0.2.7"), "eth0"}, {parse("2001:db8::7"), "eth0"}, {parse("fe80::7"), "eth0"}, {parse("fe80::8"), "eth1"},
		{parse("198.51.100.7"), "eth1"},
	}
	hasBus := func(function string) bool {
		return strings.HasPrefix(function, "0000:c0:") || strings.HasPrefix(function, "0000:3b:")
	}
	do := func(texts ...string) ([]Device, error) {
		var asked []Device
		for _, text := range texts {
			d, err := ParseDevice(text, false)
			require.NoError(t, err)
			asked = append(asked, d)
		}
		before := slices.Clone(asked)
		list, err := resolve(asked, host, hasBus)
		assert.Equal(t, before, asked, "what was asked for is left alone")
		return list, err
	}
	shown := func(texts ...string) (all []string) {
		list, err := do(texts...)
		require.NoError(t, err)
		for _, d := range list {
			text, _, _ := strings.Cut(d.String(), ",as=")
			all = append(all, text+" "+d.PCI)
		}
		return all
	}
	assert.Equal(t, []string{"a=192.0.2.7,netdev=eth0 0000:c1:00.0", "b=198.51.100.7,netdev=eth1 0000:c2:00.0"}, shown("a", "b"), "the best that are left")
	assert.Equal(t, []string{"a=198.51.100.7,netdev=eth1 0000:c1:00.0", "b=192.0.2.7,netdev=eth0 0000:5e:00.0"}, shown("a", "b=192.0.2.7,pci=0000:5e:00.0"),
		"those asked for are not given away")
	assert.Equal(t, []string{"a=192.0.2.7,gid=2001:db8::7,gid=fe80::7%eth0,netdev=eth0 0000:c1:00.0"}, shown("a=eth0"), "all of an interface, those of the link last")
	assert.Equal(t, []string{"a=127.0.0.2,netdev=lo 0000:c1:00.0", "b=127.0.0.3,gid=fe80::8%eth1,netdev=lo 0000:c2:00.0"}, shown("a=127.0.0.2", "b=127.0.0.3,gid=fe80::8%eth1"))
	assert.Equal(t, []string{"a=192.0.2.7,netdev=eth0 0000:c2:00.0", "b=198.51.100.7,netdev=eth1 0000:c1:00.0"}, shown("a", "b,pci=0000:c1:00.0"))
	for want, texts := range map[string][]string{
		"there are two devices a":                          {"a", "a=127.0.0.2"},
		"devices a and b both have 127.0.0.2":              {"a=127.0.0.2", "b=127.0.0.2"},
		"devices a and b both have 2001:db8::7":            {"a=eth0", "b=127.0.0.2,gid=2001:db8::7"},
		"device a: 192.0.2.8 is no address of this host":   {"a=192.0.2.8"},
		"device a: there is no network interface eth7":     {"a=eth7"},
		"device c: no address of this host is left for it": {"a=eth0", "b=eth1", "d=127.0.0.1", "c"},
		"this host has the bus of PCI 0000:3b:00.0":        {"a,pci=0000:3b:00.0"},
		"devices a and b are both at PCI 0000:5e:00.0":     {"a,pci=0000:5e:00.0", "b,pci=0000:5e:00.0"},
		"33 devices: there can be 32":                      slices.Repeat([]string{"a"}, 33),
	} {
		_, err := do(texts...)
		assert.ErrorContains(t, err, want)
	}
}

// TestResolveOne: without devices there is softrnic0, which is no PCI function.
func TestResolveOne(t *testing.T) {
	s, err := Settings{Addr: netip.MustParseAddr("127.0.0.1"), RoCE: true}.Resolve()
	require.NoError(t, err)
	require.Len(t, s.Devices, 1)
	assert.NotEmpty(t, s.Devices[0].Interface)
	s.Devices[0].Interface = ""
	assert.Equal(t, Device{Name: "softrnic0", Addr: s.Addr, RoCE: true, NUMA: -1, Rate: 100, MTU: 4096, Ports: 1}, s.Devices[0])
	_, err = Settings{Addr: netip.MustParseAddr("192.0.2.1")}.Resolve()
	assert.ErrorContains(t, err, "192.0.2.1 is no address of this host")
}
