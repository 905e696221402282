package sim

import "github.com/outlast-dev/outlast/internal/place"

// support is what becomes of the fields of a job file where nothing really runs: what only shapes a machine has no effect,
// what a job would notice is refused.
var support = place.Support{
	place.FieldImage:           {Effect: place.NoEffect, Why: "runs nothing"},
	place.FieldContainer:       {Effect: place.NoEffect, Why: "runs nothing"},
	place.FieldNodes:           {Effect: place.Refused, Why: "plays a task on one machine", Way: "write 1, or remove it"},
	place.FieldS3:              {Effect: place.Refused, Why: "fetches nothing from buckets", Way: "remove it: nothing runs that could read it"},
	place.FieldGS:              {Effect: place.Refused, Why: "fetches nothing from buckets", Way: "remove it: nothing runs that could read it"},
	place.FieldHTTPS:           {Effect: place.Refused, Why: "fetches nothing", Way: "remove it: nothing runs that could read it"},
	place.FieldOtherSource:     {Effect: place.Refused, Why: "fetches nothing from buckets", Way: "remove it: nothing runs that could read it"},
	place.FieldMount:           {Effect: place.Refused, Why: "mounts no buckets", Way: "remove it: nothing runs that could read it"},
	place.FieldPorts:           {Effect: place.NoEffect, Why: "runs nothing that could listen"},
	place.FieldLabels:          {Effect: place.NoEffect, Why: "has nowhere to put them"},
	place.FieldDiskSize:        {Effect: place.NoEffect, Why: "has no disks"},
	place.FieldDiskTier:        {Effect: place.NoEffect, Why: "has no disks"},
	place.FieldLocalDisk:       {Effect: place.NoEffect, Why: "has no disks"},
	place.FieldNetworkTier:     {Effect: place.NoEffect, Why: "has no network"},
	place.FieldAcceleratorArgs: {Effect: place.NoEffect, Why: "only pretends to have accelerators"},
}

// Support tells what becomes of the fields of a job file.
func (p *Provider) Support() place.Support { return support }
