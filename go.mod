module github.com/softrnic/softrnic

go 1.25.0

require (
	github.com/google/uuid v1.6.0
	github.com/stretchr/testify v1.12.1
	golang.org/x/net v0.55.0
	golang.org/x/sync v0.20.0
	golang.org/x/sys v0.45.0
)

require go.yaml.in/yaml/v3 v3.0.5 // indirect
