package local

import "github.com/outlast-dev/outlast/internal/place"

// support is what becomes of the fields of a job file on one computer. A wish whose absence a job can notice is
// refused; one that only places, protects or speeds up has no effect.
var support = place.Support{
	place.FieldImage:           {Effect: place.Refused, Why: "has no machine images", Way: "remove it, and install what is needed in setup"},
	place.FieldContainer:       {Effect: place.Refused, Why: "runs no containers", Way: "remove it, and install what is needed in setup"},
	place.FieldNodes:           {Effect: place.Refused, Why: "runs a task on one machine", Way: "write 1, or remove it"},
	place.FieldS3:              {Effect: place.Refused, Why: "fetches nothing from buckets", Way: "fetch it in setup, such as with aws s3 cp"},
	place.FieldGS:              {Effect: place.Refused, Why: "fetches nothing from buckets", Way: "fetch it in setup, such as with gsutil cp"},
	place.FieldHTTPS:           {Effect: place.Refused, Why: "fetches nothing by itself", Way: "fetch it in setup, such as with curl"},
	place.FieldOtherSource:     {Effect: place.Refused, Why: "fetches nothing from buckets", Way: "fetch it in setup"},
	place.FieldMount:           {Effect: place.Refused, Why: "mounts no buckets", Way: "read and write the bucket in run, with its own tools"},
	place.FieldPorts:           {Effect: place.NoEffect, Why: "runs jobs on one computer, where every port is open already"},
	place.FieldLabels:          {Effect: place.NoEffect, Why: "has nowhere to put them"},
	place.FieldDiskSize:        {Effect: place.NoEffect, Why: "lets a job use the disk of its computer"},
	place.FieldDiskTier:        {Effect: place.NoEffect, Why: "lets a job use the disk of its computer"},
	place.FieldLocalDisk:       {Effect: place.NoEffect, Why: "lets a job use the disk of its computer"},
	place.FieldNetworkTier:     {Effect: place.NoEffect, Why: "lets a job use the network of its computer"},
	place.FieldAcceleratorArgs: {Effect: place.NoEffect, Why: "only pretends to have accelerators"},
}

// Support tells what becomes of the fields of a job file.
func (p *Provider) Support() place.Support { return support }
