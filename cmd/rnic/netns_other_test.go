//go:build !linux

package main

func mayMakeNamespaces() bool { return false }
