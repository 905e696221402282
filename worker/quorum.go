package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/outlast-dev/outlast/internal/config"
	"github.com/outlast-dev/outlast/internal/store"
	"github.com/outlast-dev/outlast/lease"
)

// leaseServers names the further servers of the lease as all workers of the deployment must know them, without passwords.
func leaseServers(cfg config.Config) []string {
	var names []string
	for _, u := range cfg.LeaseRedis {
		names = append(names, u.Place())
	}
	slices.Sort(names)
	return names
}

// quorum connects to the further servers of the lease; nil if there are none. One that is away now may come back, so that
// is only told.
func (s *service) quorum(ctx context.Context, cfg config.Config, st *store.Store, log zerolog.Logger) (*lease.Quorum, error) {
	if len(cfg.LeaseRedis) == 0 {
		return nil, nil
	}
	var servers []redis.UniversalClient
	for _, u := range cfg.LeaseRedis {
		o, err := cfg.ServerAt(u).LeaseOptions()
		if err != nil {
			return nil, err
		}
		o.OnConnect = lease.Fresh(cfg.Lease)
		c := redis.NewUniversalClient(o)
		s.clients = append(s.clients, c)
		servers = append(servers, c)
		if err := c.Ping(ctx).Err(); err != nil {
			trouble, _ := store.TroubleOf(err)
			log.Warn().Err(err).Str("server", u.Place()).Str("advice", trouble.Advice).Msg("a lease server does not count for now")
		}
	}
	return lease.NewQuorum("ol:"+st.Deployment().ID+":", cfg.Lease, servers...), nil
}

// sameServers refuses to serve a deployment whose other workers ask other servers for their locks.
func sameServers(here, published []string) error {
	if slices.Equal(here, published) {
		return nil
	}
	say := func(servers []string) string {
		if len(servers) == 0 {
			return "none"
		}
		return strings.Join(servers, ", ")
	}
	return fmt.Errorf("the workers of this deployment have lease_redis %s, this one has %s: give all the same; to change it, stop all workers for %s", say(published), say(here), leaseChange)
}

// leaseChange is what the store waits for, and a little more.
const leaseChange = 30 * time.Second
