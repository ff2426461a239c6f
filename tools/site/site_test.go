package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// project writes a project of a few files.
func project(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// sound are the files of a project without a mistake.
func sound() map[string]string {
	return map[string]string{
		"README.md":                  "# P\n\nsee [the docs](docs/README.md), [one](docs/one.md#two-words) and [the code](p/p.go)\n",
		"docs/README.md":             "# Docs\n\n- [one.md](one.md)\n- [decisions](decisions/)\n",
		"docs/one.md":                "# One: a page\n\n## Two `words`!\n\n## Two words\n\n[up](../README.md), [twice](#two-words-1), ![a](a.png)\n",
		"docs/a.png":                 "not really",
		"docs/decisions/0010-api.md": "# 10\n\n**Promised**: `p`\n\n**Not promised**: `q`, and `internal`\n\n## Choices\n\n`r`\n",
		"p/p.go":                     "// Package p is promised.\npackage p\n\n// T is a type; see [T.F].\ntype T struct{ A int }\n\n// F is a method.\nfunc (t *T) F(o T) {}\n",
		"q/q.go":                     "// Package q is the engine.\npackage q\n",
		"r/r.go":                     "// Package r is named later only.\npackage r\n",
		"internal/x":                 "",
		"p/p_test.go":                "package p\n\nimport \"fmt\"\n\nfunc ExampleT_F() {\n\tfmt.Println(1 < 2)\n\t// Output: true\n}\n",
	}
}

func built(t *testing.T, files map[string]string, live bool) (out string, err error) {
	t.Helper()
	out = filepath.Join(t.TempDir(), "site")
	return out, run(project(t, files), out, live, false)
}

func content(t *testing.T, parts ...string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func holds(t *testing.T, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// TestLinks: what works at the forge works in the site, and sources are linked at the forge.
func TestLinks(t *testing.T) {
	out, err := built(t, sound(), false)
	if err != nil {
		t.Fatal(err)
	}
	holds(t, content(t, out, "index.html"), `href="docs/index.html"`, `href="docs/one.html#two-words"`, `href="`+forge+`/blob/main/p/p.go"`)
	holds(t, content(t, out, "docs/one.html"), `href="../index.html"`, `<h2 id="two-words">`, `<h2 id="two-words-1">`, `href="#two-words-1"`,
		`src="a.png"`, `<a href="one.html" aria-current="page">One</a>`)
	holds(t, content(t, out, "docs/index.html"), `href="decisions/index.html"`)
	holds(t, content(t, out, "docs/decisions/index.html"), `href="0010-api.html"`)
	if content(t, out, "docs/a.png") != "not really" {
		t.Error("the picture is another")
	}
}

// TestForeignPictures: badges are not asked of their host, and leave no empty paragraph; other pictures stay.
func TestForeignPictures(t *testing.T) {
	files := sound()
	badge := "https://badges.example/x.svg"
	files["docs/one.md"] = "# One\n\n[![a](" + badge + ")](one.md)\n![b](" + badge + ")\n\n## Two words\n\n![c](" + badge + ") ![d](a.png)\n\nend\n"
	out, err := built(t, files, false)
	if err != nil {
		t.Fatal(err)
	}
	got := content(t, out, "docs/one.html")
	holds(t, got, `src="a.png"`)
	for _, no := range []string{badge, "<p></p>", "<p>\n</p>"} {
		if strings.Contains(got, no) {
			t.Errorf("%q is in\n%s", no, got)
		}
	}
}

// TestAPI: packages that the decision names have a page, with links between names, and examples.
func TestAPI(t *testing.T) {
	out, err := built(t, sound(), false)
	if err != nil {
		t.Fatal(err)
	}
	holds(t, content(t, out, "api/p.html"), `id="T.F"`, `<a href="#T">T</a>`, "Package p is promised.", "Example", "1 &lt; 2")
	index := content(t, out, "api/index.html")
	promised, engine, _ := strings.Cut(index, `id="the-engine"`)
	holds(t, promised, `href="p.html"`)
	holds(t, engine, `href="q.html"`)
	if strings.Contains(index, `"r.html"`) {
		t.Error("r is listed, which the decision does not promise or deny")
	}
	holds(t, content(t, out, "search.js"), `"T.F"`, "F is a method.", `"Two words!"`)
}

// TestMistakes: each is an error that says what is wrong.
func TestMistakes(t *testing.T) {
	for name, tt := range map[string]struct{ file, text, want string }{
		"a dead link":      {"docs/one.md", "# One\n\n[x](two.md)\n", "docs/one.md: the link to two.md leads nowhere"},
		"a dead heading":   {"docs/one.md", "# One\n\n[x](README.md#nine)\n", "docs/one.md: the link to README.md#nine leads nowhere"},
		"a dead picture":   {"docs/one.md", "# One\n\n![x](b.png)\n", "docs/one.md: the link to b.png leads nowhere"},
		"out of the root":  {"README.md", "# P\n\n[x](../elsewhere)\n", "README.md: the link to ../elsewhere leaves the project"},
		"no title":         {"docs/one.md", "## One\n", "docs/one.md: no heading of the first level"},
		"an unlisted page": {"docs/two.md", "# Two\n", "docs/README.md does not list docs/two.md"},
		"no promise":       {"docs/decisions/0010-api.md", "# 10\n", "**Not promised**"},
	} {
		t.Run(name, func(t *testing.T) {
			files := sound()
			files[tt.file] = tt.text
			if tt.file == "docs/one.md" {
				files["README.md"] = "# P\n"
			}
			_, err := built(t, files, false)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the error is %v, not %q", err, tt.want)
			}
		})
	}
}

// TestLive: commands are run in a folder of the site, what they print is shown, the pages that they make are linked, and
// nothing else of theirs is left; one that fails fails the build.
func TestLive(t *testing.T) {
	files := sound()
	files["docs/one.md"] = "# One\n\n## Two words\n\n```sh live\necho 'a<b' | tee note\necho p >made.html\n```\n\n```sh\nexit 3\n```\n"
	out, err := built(t, files, true)
	if err != nil {
		t.Fatal(err)
	}
	holds(t, content(t, out, "docs/one.html"), "<code>a&lt;b\n</code>", `href="../live/made.html"`, "exit 3")
	if _, err := os.Stat(filepath.Join(out, "live", "note")); err == nil {
		t.Error("a file that is no page is left")
	}
	files["docs/one.md"] = "# One\n\n## Two words\n\n```sh live\necho why >&2; false | cat\n```\n"
	if _, err = built(t, files, true); err == nil || !strings.Contains(err.Error(), "why") {
		t.Errorf("the error is %v", err)
	}
}

// TestForeignFolder: a folder that is no site is left alone; a site is made anew.
func TestForeignFolder(t *testing.T) {
	root, out := project(t, sound()), t.TempDir()
	mine := filepath.Join(out, "mine")
	if err := os.WriteFile(mine, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(root, out, false, false); err == nil || !strings.Contains(err.Error(), "no site") {
		t.Errorf("the error is %v", err)
	}
	if _, err := os.Stat(mine); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(mine, filepath.Join(out, marker)); err != nil {
		t.Fatal(err)
	}
	if err := run(root, out, false, false); err != nil {
		t.Error(err)
	}
}

// TestColour: what is marked is still the same text.
func TestColour(t *testing.T) {
	got := colour([]byte("x := \"a<b\" // c\nreturn pkg.Name\n..."), func(of, name string) string {
		if of == "pkg" && name == "Name" {
			return "to"
		}
		return ""
	})
	want := "x := <span class=\"s\">&#34;a&lt;b&#34;</span> <span class=\"c\">// c</span>\n<span class=\"k\">return</span> pkg.<a href=\"to\">Name</a>\n..."
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
