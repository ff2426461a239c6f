// Package docs holds the documents of the project. Its tests, and those of packages that
// have tables which are pages, make the parts of them anew that come from the code, and
// fail when one is stale:
//
//	go test ./docs ./qp ./internal/vitcp ./internal/test/archtest ./lab/rnictest ./vipl -update
package docs
