package cases

import (
	"fmt"
	"iter"
	"reflect"

	"github.com/softrnic/softrnic/conformance"
)

// What every case is made of: its kind, and the parts it goes through one after another. The fixtures,
// each made from nothing but defaults unless a case says more:
//
//	fixture_host.go     an RNIC in this process with one of everything; two that are connected
//	fixture_link.go     a queue pair of a host and a raw peer
//	fixture_probe.go    access probes: what may be done with an STag
//	fixture_rig.go      a queue pair under test, driven by an upper tester, and a raw peer
//	fixture_buffer.go   its memory; memory of which each octet is watched
//	fixture_startup.go  its MPA startup, played by the case
//	fixture_rping.go    a raw peer of a program that speaks rping's language
//	fixture_paths.go    a fault tried by each way that a segment can take
//	fixture_vi.go       VI NICs, and in fixture_vi_peer.go a raw peer of a VI
//	fixture_nd.go       NetworkDirect adapters
//
// and what they are used with:
//
//	fixture_peer.go       the raw peer, and the messages that it sends and gets
//	fixture_faults.go     tables of faults, and what has to follow
//	fixture_transfers.go  data that has to arrive, the operations matrix, and probes while an operation is under way
//	fixture_await.go      completions, events and states, waited for and compared

// apiCase is a case of the verbs in this process, or of the calls of a VI NIC or a NetworkDirect
// adapter. The keys are those that it asserts.
func apiCase(name string, run func(*conformance.T), keys ...string) conformance.Case {
	return conformance.Case{Name: name, Keys: keys, Need: conformance.NeedAPI, Run: run}
}

// upperCase is a case of a raw peer against a queue pair that an upper tester drives.
func upperCase(name string, run func(*conformance.T), keys ...string) conformance.Case {
	return conformance.Case{Name: name, Keys: keys, Need: conformance.NeedUpper, Run: run}
}

// wireCase is a case of a raw peer against any target.
func wireCase(name string, run func(*conformance.T), keys ...string) conformance.Case {
	return conformance.Case{Name: name, Keys: keys, Need: conformance.NeedWire, Run: run}
}

// strict has a case of SHOULDs run with Options.Strict only.
func strict(c conformance.Case) conformance.Case {
	c.Strict = true
	return c
}

// either is a if cond holds, and b if it does not.
func either[V any](cond bool, a, b V) V {
	if cond {
		return a
	}
	return b
}

// inTurn goes through a list, each entry of which is a part of the case, as T.In makes it: what fails
// within is named by it, and by the part around it; what fails behind the loop is not. format has one verb, for the entry, or for the first field of
// a struct that begins with a string.
func inTurn[V any](t *conformance.T, format string, list []V) iter.Seq[V] {
	return func(yield func(V) bool) {
		for _, v := range list {
			if !oneOf(t, fmt.Sprintf(format, nameOf(v)), func() bool { return yield(v) }) {
				return
			}
		}
	}
}

// named goes through a table, in any order. format has one verb, for the key.
func named[V any](t *conformance.T, format string, table map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for k, v := range table {
			if !oneOf(t, fmt.Sprintf(format, k), func() bool { return yield(k, v) }) {
				return
			}
		}
	}
}

// counted goes from 0 to n-1. format has one verb, for the number.
func counted[N int | uint16 | uint32 | uint64](t *conformance.T, format string, n N) iter.Seq[N] {
	return func(yield func(N) bool) {
		for i := N(0); i < n; i++ {
			if !oneOf(t, fmt.Sprintf(format, i), func() bool { return yield(i) }) {
				return
			}
		}
	}
}

// oneOf says whether to go on behind a part.
func oneOf(t *conformance.T, part string, f func() bool) (more bool) {
	t.In(part, func() { more = f() })
	return more
}

// nameOf is what an entry is called.
func nameOf(v any) any {
	if s := reflect.ValueOf(v); s.Kind() == reflect.Struct && s.NumField() > 0 && s.Field(0).Kind() == reflect.String {
		return s.Field(0).String()
	}
	return v
}

// upTo are the numbers from one to another.
func upTo(from, to uint64) (ids []uint64) {
	for ; from <= to; from++ {
		ids = append(ids, from)
	}
	return ids
}
