package place

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outlast-dev/outlast/internal/job"
)

// plain is a provider that refuses containers and several nodes, and pays no attention to labels.
var plain = Support{
	FieldContainer: {Effect: Refused, Why: "runs no containers", Way: "remove it"},
	FieldNodes:     {Effect: Refused, Why: "makes one machine for a task", Way: "write 1"},
	FieldLabels:    {Effect: NoEffect, Why: "has no labels"},
	FieldPorts:     {Effect: Honoured},
}

// TestFieldsAreAskedFor ensures that each field is asked for by the wish or the task that sets it, and by no other.
func TestFieldsAreAskedFor(t *testing.T) {
	file := func(source, mode string) job.TaskRequest {
		return job.TaskRequest{Files: []job.FileMount{{Path: "/data", Source: source, Mode: mode}}}
	}
	seen := map[Field]bool{}
	for _, tt := range []struct {
		want job.Want
		task job.TaskRequest
		asks []Field
	}{
		{},
		{want: job.Want{Provider: "local", Region: "a", Zone: "a", Type: "t", UseSpot: true, MaxPrice: 1, CPUs: job.Quantity{N: 1}, Accelerator: "T4", AcceleratorCount: 1}},
		{want: job.Want{Image: "ami-1"}, asks: []Field{FieldImage}},
		{want: job.Want{Image: "docker:ubuntu"}, asks: []Field{FieldContainer}},
		{want: job.Want{Ports: []string{"80"}, Labels: map[string]string{"a": "b"}}, asks: []Field{FieldPorts, FieldLabels}},
		{want: job.Want{DiskGB: 1, DiskTier: "best", LocalDisk: "nvme", NetworkTier: "best"}, asks: []Field{FieldDiskSize, FieldDiskTier, FieldLocalDisk, FieldNetworkTier}},
		{want: job.Want{AcceleratorArgs: map[string]string{"a": "b"}}, asks: []Field{FieldAcceleratorArgs}},
		{task: job.TaskRequest{Nodes: 1, Files: []job.FileMount{{Path: "/data", Bundle: "x", Mode: "MOUNT"}}}},
		{task: job.TaskRequest{Nodes: 2}, asks: []Field{FieldNodes}},
		{task: file("s3://b/k", "COPY"), asks: []Field{FieldS3}},
		{task: file("gs://b", "MOUNT"), asks: []Field{FieldGS, FieldMount}},
		{task: file("https://h/x", ""), asks: []Field{FieldHTTPS}},
		{task: file("r2://b", "mount_cached"), asks: []Field{FieldOtherSource, FieldMount}},
	} {
		asked := append(wantFields(tt.want), TaskFields(tt.task)...)
		if diff := cmp.Diff(tt.asks, asked); diff != "" {
			t.Errorf("%+v %+v (-want +got):\n%s", tt.want, tt.task, diff)
		}
		for _, f := range asked {
			seen[f] = true
		}
	}
	for _, f := range Fields() {
		if !seen[f] {
			t.Errorf("no case asks for %q", f)
		}
	}
}

// TestRefused ensures that what a provider refuses rules all of its offers out with the reason and the way out, that a
// wish without it still goes there, and that another provider is not touched.
func TestRefused(t *testing.T) {
	task := job.TaskRequest{Resources: job.Resources{Any: []job.Want{{Image: "docker:ubuntu"}, {Region: "a"}}}}
	catalogs := []Catalog{{Provider: "local", Offers: []job.Offer{a1, b1, s1}, Support: plain}, {Provider: "sim", Offers: []job.Offer{c1}, Support: Support{FieldContainer: {Effect: Honoured}}}}
	if got := keys(OutlookOf(task, catalogs).Order); !cmp.Equal(got, []string{a1.Key(), c1.Key()}) {
		t.Errorf("order %v", got)
	}
	task.Nodes, task.Resources.Any = 2, task.Resources.Any[:1]
	o := OutlookOf(task, catalogs[:1])
	want := "resources.image_id: local runs no containers: remove it; num_nodes: local makes one machine for a task: write 1"
	if c := o.Hopeless(); o.Fits() || c == nil || c.Text != want || c.Code != job.CodeNoOffer {
		t.Errorf("cause %+v, want %q", c, want)
	}
	if c := Choose(InputOf(task, catalogs[:1])); c.None == nil || *c.None != *o.Hopeless() {
		t.Errorf("a worker says %+v, and the outlook %+v", c.None, o.Hopeless())
	}
}

// TestNotes ensures that what has no effect is told once for each provider that may be used, also what a provider does
// not know, and nothing else.
func TestNotes(t *testing.T) {
	task := job.TaskRequest{Resources: job.Resources{Any: []job.Want{{Region: "b", Labels: map[string]string{"a": "b"}, Ports: []string{"80"}, DiskTier: "best"}, {Region: "z", NetworkTier: "best"}}}}
	catalogs := []Catalog{{Provider: "local", Offers: []job.Offer{a1, b1, b2}, Support: plain}, {Provider: "sim", Offers: []job.Offer{a1}, Support: Support{}}}
	var got []string
	for _, n := range OutlookOf(task, catalogs).Notes {
		got = append(got, n.String())
	}
	want := []string{
		"resources.disk_tier: no effect on local, which does not know this field",
		"resources.labels: no effect on local, which has no labels",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

// TestNext ensures that the outlook says where a task goes after a loss, by its strategy.
func TestNext(t *testing.T) {
	catalogs := []Catalog{{Provider: "local", Offers: []job.Offer{a1, b1, b2}}}
	for strategy, want := range map[job.Strategy]string{"": a1.Key(), job.Failover: b1.Key(), job.Never: ""} {
		o := OutlookOf(job.TaskRequest{Resources: anything, Recovery: job.Recovery{Strategy: strategy}}, catalogs)
		got := ""
		if o.Next != nil {
			got = o.Next.Key()
		}
		if got != want {
			t.Errorf("%s: next is %q, want %q", strategy, got, want)
		}
	}
	only := []Catalog{{Provider: "local", Offers: []job.Offer{a1}}}
	if o := OutlookOf(job.TaskRequest{}, only); o.Next == nil || *o.Next != a1 {
		t.Error("the only offer is where a lost machine is replaced")
	}
	if o := OutlookOf(job.TaskRequest{}, nil); o.Fits() || o.Next != nil || !strings.Contains(o.Hopeless().Text, "no provider") {
		t.Errorf("without offers: %+v", o)
	}
}

// TestReasonOfTheNearestWish ensures that an offer is told by the wish that it comes closest to: that a spot machine is no
// on-demand one is no news to somebody who would take both.
func TestReasonOfTheNearestWish(t *testing.T) {
	big := job.Quantity{N: 64, AtLeast: true}
	task := job.TaskRequest{Resources: job.Resources{Any: []job.Want{{CPUs: big, UseSpot: true}, {CPUs: big}, {Region: "z"}}}}
	o := OutlookOf(task, []Catalog{{Provider: "local", Offers: []job.Offer{a1, s1}}})
	if c := o.Hopeless(); c == nil || c.Text != "2 CPUs, 64+ wanted" {
		t.Errorf("cause %+v", c)
	}
}
