// Package kubernetes has what a cluster needs to offer softrnic's devices to its pods, and the tests of its manifests:
//
//	rnic-device-plugin   the program that runs on each node
//	chart, kustomize     two ways to install it; the second is made from the first
//	examples             pods
//	image                builds the plug-in's image
//
// It is a module of its own, and no part of go.work: the versions that Kubernetes' packages ask for are not the
// library's. It imports nothing of softrnic's other modules; it runs rnic. docs/kubernetes.md says how to use it.
package kubernetes
