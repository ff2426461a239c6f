// Command site builds the documentation site: every Markdown page of the project, the API of its public packages, and
// pages that runs of bin/rnic make, as a folder that needs no server and no other host.
//
//	go run -C tools/site . -root ../.. -out ../../bin/site   # what `make site` does
//	go run -C tools/site . -root ../.. -check                # only whether every link leads somewhere
//
// A link that leads nowhere, a page that docs/README.md does not list, and a live command that fails are errors.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	root := flag.String("root", ".", "the project's `folder`")
	out := flag.String("out", "", "the `folder` to write; what is in it goes")
	live := flag.Bool("live", true, "run the commands of live pages, with the programs of bin")
	check := flag.Bool("check", false, "write nothing, say only what is wrong")
	flag.Parse()
	if err := run(*root, *out, *live && !*check, *check); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}

func run(root, out string, live, check bool) error {
	if (out == "") != check {
		return errors.New("give either -out FOLDER or -check")
	}
	s, err := readSite(root)
	if err != nil {
		return err
	}
	if err := s.addAPI(); err != nil {
		return err
	}
	if err := s.check(); err != nil {
		return err
	}
	if check {
		fmt.Printf("site: %d pages checked\n", len(s.pages))
		return nil
	}
	if err := s.write(out, live); err != nil {
		return err
	}
	abs, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	fmt.Printf("site: %d pages; open file://%s\n", len(s.pages), filepath.ToSlash(filepath.Join(abs, "index.html")))
	return nil
}
