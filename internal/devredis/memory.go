package devredis

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"
)

// expireEvery is how often keys are expired in memory. miniredis can do it by itself, but then walks all keys at each
// command, which makes it sixty times slower.
const expireEvery = 100 * time.Millisecond

// startMemory runs miniredis in this process. Other users of the computer can reach a loopback port, hence the password.
func startMemory(log zerolog.Logger) (*Server, error) {
	mini := miniredis.NewMiniRedis()
	password := rand.Text()
	mini.RequireAuth(password)
	if err := mini.StartAddr("127.0.0.1:0"); err != nil {
		return nil, err
	}
	log.Debug().Str("address", mini.Addr()).Msg("redis is running in memory")

	done := make(chan struct{})
	stopping := make(chan struct{})
	go func() {
		defer close(done)
		expire(mini, stopping)
		mini.Close()
	}()
	var once sync.Once
	return &Server{
		options: redis.Options{Network: "tcp", Addr: mini.Addr(), Password: password},
		done:    done,
		err:     func() error { return nil },
		stop: func(context.Context) error {
			once.Do(func() { close(stopping) })
			<-done
			return nil
		},
	}, nil
}

// expire lets time pass for the keys of mini until stop is closed.
func expire(mini *miniredis.Miniredis, stop <-chan struct{}) {
	tick := time.NewTicker(expireEvery)
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			now := time.Now()
			mini.FastForward(now.Sub(last))
			last = now
		}
	}
}
