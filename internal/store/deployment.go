package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Schema is the version of what this package writes. A deployment holds one version; another program is refused.
const Schema = 3

// Deployment is what all workers and clients of one store agree on. It is written by the first that opens the store.
type Deployment struct {
	ID        string // tags every machine
	Schema    int
	Shards    int
	Archive   string // URL of the bucket for bundles and logs
	Recipient string // public key for secrets; empty if no worker can open them
	LocalHost string // the computer and folder that the local provider's machines live on
	// NoCallbacks says that its workers run no event_callback; as the worker that started last has it.
	NoCallbacks bool
	Caps        Caps // as the worker that started last has them
	// Replicas is how many replicas must have what a client is told is done; as the worker that started last has it.
	Replicas int
	// Leases are the further servers of the lease, sorted; see [Store.Leases].
	Leases []string
}

// SchemaError says that the store was written by another version.
type SchemaError struct{ Have, Want int }

func (e *SchemaError) Error() string {
	if e.Have > e.Want {
		return fmt.Sprintf("this store holds schema %d, this program writes schema %d: use a newer version of outlast", e.Have, e.Want)
	}
	return fmt.Sprintf("this store holds schema %d, this program writes schema %d: finish its jobs with the older version, or use another Redis database", e.Have, e.Want)
}

// ErrNoDeployment says that no worker has ever used the store.
var ErrNoDeployment = errors.New("no outlast deployment in this Redis: start a worker first (worker dev, or worker run)")

// Open opens the store of a deployment that exists.
func Open(ctx context.Context, rdb redis.UniversalClient) (*Store, error) {
	Explain(rdb)
	return open(ctx, rdb)
}

func open(ctx context.Context, rdb redis.UniversalClient) (*Store, error) {
	d, err := readDeployment(ctx, rdb)
	if err != nil {
		return nil, err
	}
	return newStore(rdb, d), nil
}

// Found opens the store for a worker, and creates the deployment if there is none. want.ID may be empty; the
// fields of an existing deployment win, except that empty ones of it are filled.
func Found(ctx context.Context, rdb redis.UniversalClient, want Deployment) (*Store, error) {
	Explain(rdb)
	if want.ID == "" {
		b := make([]byte, 6)
		rand.Read(b) // never fails
		want.ID = hex.EncodeToString(b)
	}
	if want.Shards <= 0 || want.Shards > 100 {
		return nil, fmt.Errorf("number of shards must be 1 to 100, not %d", want.Shards)
	}
	if _, err := readDeployment(ctx, rdb); err != nil && !errors.Is(err, ErrNoDeployment) {
		return nil, err // nothing is written to a store of another version
	}
	// One script: all or nothing against another worker's first start. (A transaction that Redis refuses does not say why.)
	err := foundScript.Run(ctx, rdb, []string{deploymentPrefix + "deployment", deploymentPrefix + "workers"}, want.Caps.Launches, want.Caps.Live, want.NoCallbacks,
		want.Replicas, joinLeases(want.Leases), ms(leasesRest), "id", want.ID, "schema", Schema, "shards", want.Shards, "archive", want.Archive, "recipient", want.Recipient, "local", want.LocalHost).Err()
	if err != nil {
		return nil, unavailable("found the deployment", err)
	}
	return open(ctx, rdb)
}

// leasesRest is how long no worker may have reported before another one may bring other servers of the lease: two workers
// with different ones would not keep out each other.
const leasesRest = 20 * time.Second

// Leases are the servers that all workers of the deployment must ask for a lock, as they are now.
func (s *Store) Leases(ctx context.Context) ([]string, error) {
	text, err := s.rdb.HGet(ctx, deploymentPrefix+"deployment", "leases").Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, unavailable("read the servers of the lease", err)
	}
	return splitLeases(text), nil
}

func joinLeases(servers []string) string {
	sorted := slices.Sorted(slices.Values(servers))
	return strings.Join(sorted, " ")
}

func splitLeases(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Fields(text)
}

// foundScript runs before there is a store.
var foundScript = script("found")

func newStore(rdb redis.UniversalClient, d Deployment) *Store {
	return &Store{rdb: rdb, deploy: d, keys: keys{shards: d.Shards}, raise: step, lua: loadScripts()}
}

func readDeployment(ctx context.Context, rdb redis.UniversalClient) (Deployment, error) {
	m, err := rdb.HGetAll(ctx, deploymentPrefix+"deployment").Result()
	if err != nil {
		return Deployment{}, unavailable("read the deployment", err)
	}
	if m["id"] == "" {
		return Deployment{}, ErrNoDeployment
	}
	d := Deployment{ID: m["id"], Archive: m["archive"], Recipient: m["recipient"], LocalHost: m["local"], NoCallbacks: m["nocallbacks"] == "1"}
	if d.Schema, err = strconv.Atoi(m["schema"]); err != nil || d.Schema != Schema {
		return Deployment{}, &SchemaError{Have: d.Schema, Want: Schema}
	}
	if d.Shards, err = strconv.Atoi(m["shards"]); err != nil || d.Shards <= 0 {
		return Deployment{}, fmt.Errorf("the deployment's record is damaged: shards is %q", m["shards"])
	}
	if d.Caps.Launches, err = strconv.Atoi(m["launches"]); err != nil {
		return Deployment{}, fmt.Errorf("the deployment's record is damaged: launches is %q", m["launches"])
	}
	d.Replicas, _ = strconv.Atoi(m["replicas"]) // absent means none
	d.Leases = splitLeases(m["leases"])
	d.Caps.Live, _ = strconv.Atoi(m["live"]) // absent means no cap
	return d, nil
}
