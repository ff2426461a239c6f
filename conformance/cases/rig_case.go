package cases

import "github.com/softrnic/softrnic/conformance"

// apiCase is a case of the verbs in this process, or of the calls of a VI NIC or a
// NetworkDirect adapter: what rig_world.go, rig_vi_pair.go and rig_nd.go make plays in it. The
// keys are those that it asserts.
func apiCase(name string, run func(*conformance.T), keys ...string) conformance.Case {
	return conformance.Case{Name: name, Keys: keys, Need: conformance.NeedAPI, Run: run}
}

// upperCase is a case of a raw peer against a queue pair that an upper tester drives: see
// rig.go.
func upperCase(name string, run func(*conformance.T), keys ...string) conformance.Case {
	return conformance.Case{Name: name, Keys: keys, Need: conformance.NeedUpper, Run: run}
}

// wireCase is a case of a raw peer against who knows what: see rig_blind.go.
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
