package nic

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/stats"
)

// processes are those of this user. One that has just ended, or does not answer, is left out.
func processes() ([]cli.Answer, error) {
	stats.Tidy()
	sockets, err := stats.Sockets()
	if err != nil {
		return nil, err
	}
	all := slices.DeleteFunc(cli.ReadStats(sockets), func(p cli.Answer) bool { return p.Err != nil })
	if len(all) == 0 {
		return nil, cli.NoStats("nic")
	}
	return all, nil
}

// target is what an argument NIC names: a process, a device, or both.
type target struct {
	pid    int // 0: any
	device string
}

func parseTarget(text string) target {
	pid, device, both := strings.Cut(text, "/")
	n, err := strconv.Atoi(pid)
	switch {
	case both && err == nil && n > 0:
		return target{n, device}
	case err == nil && n > 0:
		return target{pid: n}
	}
	return target{device: text}
}

// devices are those of p that can be told something, and that t names.
func (t target) devices(p cli.Answer) (names []string) {
	for i := range p.RNICs {
		port := p.RNICs[i].Port
		if port != nil && (t.pid == 0 || t.pid == p.PID) && (t.device == "" || t.device == port.Device) {
			names = append(names, port.Device)
		}
	}
	return names
}

// order has all NICs that are named carry out c, and says what each did. No name means all.
func order(cmd *cobra.Command, names []string, c stats.Command) error {
	all, err := processes()
	if err != nil {
		return err
	}
	if len(names) == 0 {
		names = []string{""}
	}
	var failed error
	for _, name := range names {
		n := 0
		for _, p := range all {
			for _, device := range parseTarget(name).devices(p) {
				n++
				c.Device = device
				who := fmt.Sprintf("%s[%d]/%s", cli.Printable(p.Program), p.PID, cli.Printable(device))
				done, err := stats.Order(p.Socket, c)
				if err != nil {
					failed = errors.Join(failed, fmt.Errorf("nic: %s: %w", who, err))
					continue
				}
				if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", who, cli.Printable(done)); err != nil {
					return err
				}
			}
		}
		if n == 0 {
			failed = errors.Join(failed, notFound(name, all))
		}
	}
	return failed
}

// notFound says what there is.
func notFound(name string, all []cli.Answer) error {
	var there []string
	for _, p := range all {
		for _, device := range (target{}).devices(p) {
			there = append(there, fmt.Sprintf("%d/%s", p.PID, cli.Printable(device)))
		}
	}
	if len(there) == 0 {
		return errors.New("nic: the processes that offer their counters let nothing be done to their NICs")
	}
	return fmt.Errorf("nic: there is no %s: there are %s (rnic nic ls)", cmp.Or(name, "no NIC"), strings.Join(there, ", "))
}
