package spec

//go:generate go test . -run TestGenerated -update
