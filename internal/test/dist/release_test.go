//go:build release

package dist

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// oldest is the glibc that the libraries run with: Debian 11's, Ubuntu 20.04's.
var oldest = []int{2, 31}

// folder is what was built: SOFTRNIC_DIST.
func folder(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("SOFTRNIC_DIST")
	require.NotEmpty(t, dir, "SOFTRNIC_DIST has to name what `make release` has built")
	return dir
}

// TestSums: the files are those of a release and no others, and SHA256SUMS has the hash of each.
func TestSums(t *testing.T) {
	dir, version := folder(t), verbs.Version().Release
	want := []string{"SHA256SUMS", "install.sh"}
	for _, system := range []string{"darwin-amd64.tar.gz", "darwin-arm64.tar.gz", "linux-amd64.tar.gz", "linux-arm64.tar.gz", "windows-amd64.zip"} {
		name := "softrnic-" + version + "-" + system
		want = append(want, name, strings.TrimSuffix(strings.TrimSuffix(name, ".tar.gz"), ".zip")+".cdx.json")
	}
	want = append(want, "softrnic_"+version+"-1_amd64.deb", "softrnic_"+version+"-1_arm64.deb",
		"softrnic-"+version+"-1.x86_64.rpm", "softrnic-"+version+"-1.aarch64.rpm")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names, list []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	assert.ElementsMatch(t, want, names)

	sums, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	require.NoError(t, err)
	for line := range strings.Lines(string(sums)) {
		hash, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		b, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		sum := sha256.Sum256(b)
		assert.Equal(t, hash, hex.EncodeToString(sum[:]), name)
		list = append(list, name, name)
	}
	assert.Len(t, list, 2*(len(want)-1), "SHA256SUMS has all files but itself")
}

// each reads every .tar.gz.
func each(t *testing.T, pattern string, test func(t *testing.T, system string, files []file)) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder(t), "softrnic-*"+pattern+".tar.gz"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".tar.gz")
		t.Run(name, func(t *testing.T) {
			files, err := read(path)
			require.NoError(t, err)
			for i := range files {
				rest, ok := strings.CutPrefix(files[i].Name, name+"/")
				require.True(t, ok, files[i].Name)
				files[i].Name = rest
			}
			parts := strings.Split(name, "-")
			test(t, strings.Join(parts[len(parts)-2:], "/"), files)
		})
	}
}

// TestArchives: names are sorted, the time is one and the commit's, the owner is 0, and others may read but not write.
func TestArchives(t *testing.T) {
	each(t, "", func(t *testing.T, system string, files []file) {
		rnic := program(t, system, files)
		info, err := buildinfo.Read(bytes.NewReader(rnic.octets))
		require.NoError(t, err)
		settings := map[string]string{}
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
		assert.Equal(t, system, settings["GOOS"]+"/"+settings["GOARCH"])
		assert.Equal(t, "true", settings["-trimpath"])
		assert.Equal(t, "false", settings["vcs.modified"])
		assert.Equal(t, "0", settings["CGO_ENABLED"])

		assert.True(t, slices.IsSortedFunc(files, func(a, b file) int { return slices.Compare(folders(a.Name), folders(b.Name)) }))
		for _, f := range files {
			assert.Equal(t, settings["vcs.time"], f.ModTime.UTC().Format("2006-01-02T15:04:05Z"), f.Name)
			assert.Zero(t, f.Uid+f.Gid, f.Name)
			assert.Empty(t, f.Uname+f.Gname, f.Name)
			want := int64(0o644)
			switch {
			case f.Linkname != "":
				want = 0o777
			case strings.HasSuffix(f.Name, "/") || f.Name == rnic.Name || f.Name == "" || strings.HasPrefix(f.Name, "share/softrnic/ci/"):
				want = 0o755
			}
			assert.Equal(t, want, f.Mode, f.Name)
		}
	})
}

// folders are the parts of a name: a folder's files come right behind it.
func folders(name string) []string { return strings.Split(strings.TrimSuffix(name, "/"), "/") }

// program is rnic of the archive.
func program(t *testing.T, system string, files []file) file {
	t.Helper()
	name := "bin/rnic"
	if strings.HasPrefix(system, "linux/") {
		name = "lib/softrnic/rnic"
	}
	return named(t, files, name)
}

func named(t *testing.T, files []file, name string) file {
	t.Helper()
	i := slices.IndexFunc(files, func(f file) bool { return f.Name == name })
	require.GreaterOrEqual(t, i, 0, name)
	return files[i]
}

// TestComponents: each module that is in a program is in the list of components, and its licence is in the archive.
func TestComponents(t *testing.T) {
	each(t, "", func(t *testing.T, system string, files []file) {
		list := named(t, files, "share/doc/softrnic/components.cdx.json")
		var bom struct {
			Components []struct{ Name, Version string }
		}
		require.NoError(t, json.Unmarshal(list.octets, &bom))
		var components []string
		for _, c := range bom.Components {
			components = append(components, c.Name+"@"+c.Version)
		}
		programs := []file{program(t, system, files)}
		if strings.HasPrefix(system, "linux/") {
			programs = append(programs, named(t, files, "lib/softrnic/libsoftrnic-engine.so"))
		}
		for _, p := range programs {
			info, err := buildinfo.Read(bytes.NewReader(p.octets))
			require.NoError(t, err)
			require.NotEmpty(t, info.Deps)
			for _, m := range info.Deps {
				if m.Path == "github.com/softrnic/softrnic" {
					continue
				}
				assert.Contains(t, components, m.Path+"@"+m.Version)
				assert.True(t, slices.ContainsFunc(files, func(f file) bool {
					return strings.HasPrefix(f.Name, "share/doc/softrnic/licences/"+m.Path+"@"+m.Version+"/LICENSE")
				}), m.Path)
			}
			assert.Contains(t, components, "std@"+info.GoVersion)
		}
		named(t, files, "share/doc/softrnic/licences/go/LICENSE")
	})
}

// TestLibraries: they are of the archive's processor, need no newer glibc than the oldest, and no library but glibc's.
func TestLibraries(t *testing.T) {
	machine := map[string]elf.Machine{"linux/amd64": elf.EM_X86_64, "linux/arm64": elf.EM_AARCH64}
	each(t, "-linux-*", func(t *testing.T, system string, files []file) {
		for _, name := range []string{"libsoftrnic-engine.so", "libsoftrnic-preload.so"} {
			lib, err := elf.NewFile(bytes.NewReader(named(t, files, "lib/softrnic/"+name).octets))
			require.NoError(t, err)
			assert.Equal(t, machine[system], lib.Machine)
			version, symbol, err := glibc(lib)
			require.NoError(t, err)
			assert.NotEmpty(t, version, "%s needs nothing of glibc", name)
			assert.LessOrEqual(t, slices.Compare(version, oldest), 0, "%s needs %s", name, symbol)
			needed, err := lib.ImportedLibraries()
			require.NoError(t, err)
			for _, n := range needed {
				assert.Regexp(t, `^(lib(c|dl|pthread|resolv)|ld-linux.*)\.so\.\d$`, n, name)
			}
			t.Logf("%s: %v, by %s", name, version, symbol)
		}
		rnic, err := elf.NewFile(bytes.NewReader(program(t, system, files).octets))
		require.NoError(t, err)
		for _, p := range rnic.Progs {
			assert.NotEqual(t, elf.PT_INTERP, p.Type, "rnic is for systems with any libc")
		}
	})
}
