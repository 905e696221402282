package store

import (
	"fmt"
	"strconv"

	"github.com/outlast-dev/outlast/internal/job"
)

// deploymentPrefix is the hash tag of what belongs to no shard.
const deploymentPrefix = "ol:{d}:"

// keys names keys. Shards never changes once a deployment has started.
type keys struct{ shards int }

func (k keys) shardOf(id job.ID) int { return int(int64(id) % int64(k.shards)) }

func (k keys) prefix(shard int) string { return fmt.Sprintf("ol:{s%02d}:", shard) }

func (k keys) of(id job.ID, kind string) string {
	return k.prefix(k.shardOf(id)) + kind + ":" + strconv.FormatInt(int64(id), 10)
}

func (k keys) due(shard int) string { return k.prefix(shard) + "due" }

// blocks are the numbers of the blocks of a shard's index, see lua/index.lua.
func (k keys) blocks(shard int) string { return k.prefix(shard) + "blocks" }

// count is how many jobs of a shard are in each status.
func (k keys) count(shard int) string { return k.prefix(shard) + "count" }

// hooks is the index of a shard's jobs with news.
func (k keys) hooks(shard int) string { return k.prefix(shard) + "hooks" }

// made is the set of ids that a shard has written of a submission with a key, whose first job is first.
func (k keys) made(shard int, first job.ID) string {
	return k.prefix(shard) + "made:" + strconv.FormatInt(int64(first), 10)
}

// chain is the key of a chain: that of a watch lies with its shard, so that a wake can reach both in one script.
func (k keys) chain(name string) string {
	var shard int
	if _, err := fmt.Sscanf(name, "watch-%d", &shard); err == nil {
		return k.prefix(shard) + "chain"
	}
	return deploymentPrefix + "chain:" + name
}

// viewBlocks are the machines of a region, by the number of their block, and viewMarks what tells whether they have changed.
func (k keys) viewBlocks(place string) string { return deploymentPrefix + "view:" + place }
func (k keys) viewMarks(place string) string  { return deploymentPrefix + "viewmarks:" + place }

// WatchChain is the name of the chain that watches a shard.
func WatchChain(shard int) string { return "watch-" + strconv.Itoa(shard) }
