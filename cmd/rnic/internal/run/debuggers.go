package run

import (
	"debug/elf"
	_ "embed"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// suppressions have valgrind leave the engine out of its report.
//
//go:embed valgrind.supp
var suppressions []byte

// suppressionsName is their file in the folder of the device's files.
const suppressionsName = "valgrind.supp"

// writeSuppressions writes them to dir, and returns what VALGRIND_OPTS has to be, which was opts.
func writeSuppressions(dir, opts string) (string, error) {
	path := filepath.Join(dir, suppressionsName)
	if err := os.WriteFile(path, suppressions, 0o444); err != nil { //nolint:gosec // G306: nothing in it is secret
		return "", err
	}
	if strings.ContainsAny(path, " \t\n") { // no quoting there
		return opts, nil
	}
	return strings.TrimSpace(opts + " --suppressions=" + path), nil
}

// addressSanitizer is the library of ASan that the program at path is linked with, or "". It wants to be the first of all.
func addressSanitizer(path string) string {
	f, err := elf.Open(path)
	if err != nil {
		return "" // a script, or not to be read
	}
	defer f.Close()
	needs, _ := f.ImportedLibraries()
	if i := slices.IndexFunc(needs, isAddressSanitizer); i >= 0 {
		return needs[i]
	}
	return ""
}

// isAddressSanitizer reports whether a library is gcc's, or clang's, by its name.
func isAddressSanitizer(library string) bool {
	name := filepath.Base(library)
	return strings.HasPrefix(name, "libasan.so") || strings.HasPrefix(name, "libclang_rt.asan")
}

// preloadList is LD_PRELOAD: ours before the user's, but ASan before all.
func preloadList(ours, asan, users string) string {
	list := strings.FieldsFunc(users, func(r rune) bool { return r == ':' || r == ' ' })
	if asan != "" && !slices.ContainsFunc(list, isAddressSanitizer) {
		list = append([]string{asan}, list...)
	}
	first, last := []string{}, []string{}
	for _, l := range list {
		if isAddressSanitizer(l) {
			first = append(first, l)
		} else {
			last = append(last, l)
		}
	}
	return strings.Join(slices.Concat(first, []string{ours}, last), ":")
}
