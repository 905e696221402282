package store

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// Recipient is the public key that secrets are sealed for now: it changes when a worker brings a new one. "" means that
// nobody could open them.
func (s *Store) Recipient(ctx context.Context) (string, error) {
	r, err := s.rdb.HGet(ctx, deploymentPrefix+"deployment", "recipient").Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", unavailable("read the public key for secrets", err)
	}
	return r, nil
}

// Rotate has secrets sealed for next from now on, if they are sealed for old now; it reports whether they are for next
// afterwards.
func (s *Store) Rotate(ctx context.Context, old, next string) (bool, error) {
	done, err := s.lua.rotate.Run(ctx, s.rdb, []string{deploymentPrefix + "deployment"}, old, next).Bool()
	if err != nil && !errors.Is(err, redis.Nil) {
		return false, unavailable("change the public key for secrets", err)
	}
	return done, nil
}
