package layout

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// nodeName is a host or a switch: it becomes a host name, and stands before a dot or a dash. nicName becomes the name of
// a network interface (15 octets) and of an RDMA device.
var (
	nodeName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{0,31}$`)
	nicName  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,14}$`)
	ranged   = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9]*?)([0-9]+)\.\.([A-Za-z][A-Za-z0-9]*?)([0-9]+)$`)
)

// expand makes the names of h1..h8, or of one name.
func expand(word string) ([]string, error) {
	if !strings.Contains(word, "..") {
		if !nodeName.MatchString(word) {
			return nil, fmt.Errorf("%q is no name: want a letter, then letters and digits, 32 at most; or a range such as h1..h8", word)
		}
		return []string{word}, nil
	}
	m := ranged.FindStringSubmatch(word)
	if len(m) == 0 || m[1] != m[3] {
		return nil, fmt.Errorf("%q is no range: want the same name with two numbers, such as h1..h8", word)
	}
	from, err1 := strconv.Atoi(m[2])
	to, err2 := strconv.Atoi(m[4])
	if err1 != nil || err2 != nil || to < from || to-from >= MaxHosts {
		return nil, fmt.Errorf("%q is no range: want the smaller number first, and %d names at most", word, MaxHosts)
	}
	var names []string
	for n := from; n <= to; n++ {
		name := m[1] + strconv.Itoa(n)
		if !nodeName.MatchString(name) {
			return nil, fmt.Errorf("%q is too long a name: want 32 letters and digits at most", name)
		}
		names = append(names, name)
	}
	return names, nil
}

// hosts are the numbers of those that words name; * is all.
func (f *Fabric) hosts(words []string) (numbers []int, err error) {
	for _, w := range words {
		if w == "*" {
			for i := range f.Hosts {
				numbers = append(numbers, i)
			}
			continue
		}
		names, err := expand(w)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			i, err := f.HostNumber(name)
			if err != nil {
				return nil, err
			}
			numbers = append(numbers, i)
		}
	}
	return unique(numbers), nil
}

// FindLinks are the numbers of those that words name: h1.nic0, h1..h8.nic0, all of a host (h1), *.nic0, a trunk or a pair
// (s1-s2), or * for all.
func (f *Fabric) FindLinks(words []string) (numbers []int, err error) {
	for _, w := range words {
		found, err := f.findLinks(w)
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, found...)
	}
	return unique(numbers), nil
}

func (f *Fabric) findLinks(word string) (numbers []int, err error) {
	if word == "*" {
		for i := range f.Links {
			numbers = append(numbers, i)
		}
		return numbers, nil
	}
	if i := slices.IndexFunc(f.Links, func(l Link) bool { return l.Name == word || l.reversed() == word }); i >= 0 {
		return []int{i}, nil
	}
	of, nic := word, ""
	if dot := strings.LastIndex(word, "."); dot >= 0 && !strings.HasSuffix(word[:dot], ".") {
		of, nic = word[:dot], word[dot+1:]
	}
	if strings.Contains(word, "-") {
		return nil, f.noLink(word)
	}
	hosts, err := f.hosts([]string{of})
	if err != nil {
		return nil, fmt.Errorf("no link %q: %w", word, err)
	}
	for i := range f.Links {
		for _, e := range f.Links[i].Ends {
			if slices.Contains(hosts, e.Host) && (nic == "" || f.Hosts[e.Host].NICs[e.NIC].Name == nic) {
				numbers = append(numbers, i)
			}
		}
	}
	if len(numbers) == 0 {
		return nil, f.noLink(word)
	}
	return numbers, nil
}

func (f *Fabric) noLink(word string) error {
	return fmt.Errorf("there is no link %q; there are %s", word, listed(f.linkNames()))
}

// reversed is the other name of a trunk or pair: s2-s1.
func (l *Link) reversed() string {
	a, b, two := strings.Cut(l.Name, "-")
	if !two {
		return l.Name
	}
	return b + "-" + a
}

func unique(numbers []int) []int {
	var once []int
	seen := map[int]bool{}
	for _, n := range numbers {
		if !seen[n] {
			seen[n] = true
			once = append(once, n)
		}
	}
	return once
}

const wantProperties = "want delay such as 2ms, rate such as 10g, loss such as 0.1%"

// properties reads words such as delay 1ms rate 10g into p.
func properties(words []string, p *Properties) error {
	if len(words) == 0 {
		return fmt.Errorf("no property is here: %s", wantProperties)
	}
	seen := map[string]bool{}
	for len(words) > 0 {
		what := words[0]
		if len(words) < 2 {
			return fmt.Errorf("%q is not allowed here, or has no value: %s", what, wantProperties)
		}
		if seen[what] {
			return fmt.Errorf("%s is there twice", what)
		}
		seen[what] = true
		if err := property(what, words[1], p); err != nil {
			return err
		}
		words = words[2:]
	}
	return nil
}

func property(what, value string, p *Properties) (err error) {
	switch what {
	case "delay":
		p.Delay, err = parseDelay(value)
	case "rate":
		p.Rate, err = parseRate(value)
	case "loss":
		p.Loss, err = parseLoss(value)
	default:
		err = fmt.Errorf("%q is no property: %s", what, wantProperties)
	}
	return err
}

const maxDelay = 10 * time.Second

func parseDelay(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || d > maxDelay {
		return 0, fmt.Errorf("delay takes a time from 0s to %v, such as 500us or 2ms, not %q", maxDelay, s)
	}
	return d, nil
}

var rateUnits = []struct {
	name string
	bits float64
}{{"gbit", 1e9}, {"mbit", 1e6}, {"kbit", 1e3}, {"g", 1e9}, {"m", 1e6}, {"k", 1e3}}

// A rate below a packet a second, or beyond what a counter of octets holds, is a slip.
const minRate, maxRate = 8_000, 1e12

func parseRate(s string) (uint64, error) {
	for _, u := range rateUnits {
		number, ok := strings.CutSuffix(s, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(number, 64)
		if bits := math.Round(n * u.bits); err == nil && bits >= minRate && bits <= maxRate {
			return uint64(bits), nil
		}
		break
	}
	return 0, fmt.Errorf("rate takes bits a second from 8k to 1000g, such as 100m or 10g, not %q", s)
}

// FormatRate is a rate as a file has it.
func FormatRate(bits uint64) string {
	for _, u := range rateUnits[3:] {
		if unit := uint64(u.bits); bits >= unit && bits*1000%unit == 0 {
			return strconv.FormatFloat(float64(bits)/u.bits, 'f', -1, 64) + u.name
		}
	}
	return strconv.FormatFloat(float64(bits)/1e3, 'f', -1, 64) + "k"
}

func parseLoss(s string) (float64, error) {
	number, percent := strings.CutSuffix(s, "%")
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !percent || !(n >= 0 && n <= 100) {
		return 0, fmt.Errorf("loss takes a share from 0%% to 100%%, such as 0.1%%, not %q", s)
	}
	return n / 100, nil
}
