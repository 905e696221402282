package main

import (
	"context"

	"github.com/outlast-dev/outlast/chaos/history"
)

// sky is the world of the sim provider.
type sky struct{ world string }

func (s *sky) open(context.Context, *round) error { return nil }
func (s *sky) settings() map[string]any           { return nil }
func (s *sky) close() error                       { return nil }

func (s *sky) machines(context.Context) ([]history.Machine, error) { return nil, nil }
func (s *sky) dump(context.Context, *history.Writer) error         { return nil }
