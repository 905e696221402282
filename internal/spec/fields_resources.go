package spec

// resourcesSection is what a task asks of its machines.
var resourcesSection = &section{
	title: "`resources`",
	intro: "Fields that are not written accept anything. Whether a provider has such a machine is said by `enqueue plan`.",
	fields: append(entrySection.pick(resourceNames...), []fieldInfo{
		{
			name: "any_of", form: "list of resources", schema: listOf(anyOf(entrySection.schema(), nullSchema)), unset: "",
			means: "several acceptable kinds, the cheapest first. Fields beside it are defaults of its entries", example: "[{use_spot: true}, {use_spot: false}]", by: byChoice,
		},
		{
			name: "ordered", form: "list of resources", schema: listOf(anyOf(entrySection.schema(), nullSchema)), unset: "",
			means: "the same, in the order as written", example: "[{infra: aws/us-east-1}, {infra: aws}]", by: byChoice,
		},
	}...),
}

// resourceNames are the fields that stand directly under resources as well as in an entry of any_of and ordered.
var resourceNames = []string{
	"infra", "cloud", "region", "zone", "cpus", "memory", "accelerators", "gpus", "accelerator_args", "instance_type", "use_spot", "max_hourly_cost",
	"disk_size", "disk_tier", "local_disk", "network_tier", "image_id", "ports", "labels", "job_recovery", "spot_recovery", "priority", "autostop",
	"priority_class", "volumes", "_cluster_config_overrides",
}

// entrySection is one entry of any_of or ordered.
var entrySection = &section{
	fields: []fieldInfo{
		{
			name: "infra", form: "`provider/region/zone`", schema: schema{"type": "string", "minLength": 1}, unset: "any",
			means: "each part may be `*` or left out: `local`, `local/b`, `*/b`", example: "local/b", by: byChoice,
		},
		{
			name: "cloud", kind: older, form: "text", schema: textSchema, unset: "any",
			means: "older spelling of the first part of `infra`", example: "aws", by: "as `infra`",
		},
		{
			name: "region", kind: older, form: "text", schema: textSchema, unset: "any",
			means: "older spelling of the second part of `infra`", example: "us-east-1", by: "as `infra`",
		},
		{
			name: "zone", kind: older, form: "text", schema: textSchema, unset: "any",
			means: "older spelling of the third part of `infra`", example: "us-east-1a", by: "as `infra`",
		},
		{
			name: "cpus", form: "`4` or `4+`", schema: amountSchema(cpuPattern), unset: "any",
			means: "exactly, or at least", example: "4+", by: byChoice,
		},
		{
			name: "memory", form: "`16`, `16+`, `512MB`", schema: amountSchema(memoryPattern), unset: "any",
			means: "GB unless there is a unit (KB, MB, GB, TB, PB)", example: "16+", by: byChoice,
		},
		{
			name: "accelerators", form: "`A100:8`, `A100`, `{A100: 8}`, list, set", schema: acceleratorsSchema, unset: "none asked for",
			means: "name and count. Several in a list are tried in that order, several in a set the cheapest first. A list does not go together with `any_of` and `ordered`, a set not with `ordered`", example: "A100:8", by: byChoice,
		},
		{
			name: "gpus", kind: older, form: "as `accelerators`", schema: acceleratorsSchema, unset: "",
			means: "another spelling of `accelerators`", example: "A100:8", by: byChoice,
		},
		{
			name: "accelerator_args", form: "names to values", schema: mapOf(scalarSchema), unset: "none",
			means: "of an accelerator, such as the runtime of a TPU", example: "{runtime_version: tpu-vm-base}", by: byProvider0,
		},
		{
			name: "instance_type", form: "text", schema: textSchema, unset: "any",
			means: "the provider's name for a kind of machine", example: "m6i.large", by: byChoice,
		},
		{
			name: "use_spot", form: "boolean", schema: boolSchema, unset: "`false`",
			means: "only machines that can be taken away, or only others", example: "true", by: byChoice,
		},
		{
			name: "max_hourly_cost", form: "number", schema: amountSchema(pricePattern), unset: "no limit",
			means: "no machine that costs more per hour", example: "1.5", by: byChoice,
		},
		{
			name: "disk_size", form: "`100` or `1TB`", schema: amountSchema(sizePattern), unset: "the provider's",
			means: "GB unless there is a unit", example: "100", by: byProvider0,
		},
		{
			name: "disk_tier", form: quoted(diskTiers), schema: anyCase(append(diskTiers, none)...), unset: "the provider's",
			means: "how fast the disk is", example: "high", by: byProvider0,
		},
		{
			name: "local_disk", form: "`nvme:1000+`", schema: amountSchema(localDiskForm), unset: "none asked for",
			means: "disk of the machine itself: kind, GB, or both", example: "nvme:1000+", by: byProvider0,
		},
		{
			name: "network_tier", form: quoted(networkTiers), schema: anyCase(networkTiers...), unset: "the provider's",
			means: "how fast the network between nodes is", example: "best", by: byProvider0,
		},
		{
			name: "image_id", form: "text, or regions to text", schema: anyOf(textSchema, mapOf(textSchema)), unset: "the provider's",
			means: "image of the machine, or `docker:NAME`. One for each region: only these regions", example: "docker:python:3.13", by: byProvider,
		},
		{
			name: "ports", form: "`8080`, `8000-8010`, or a list", schema: anyOf(portSchema, schema{"type": "array", "items": portSchema}), unset: "none",
			means: "opened to the world", example: "8080", by: byProvider0,
		},
		{
			name: "labels", form: "names to values", schema: mapOf(scalarSchema), unset: "none",
			means: "put on the machine as tags", example: "{team: vision}", by: byProvider0,
		},
		{
			name: "job_recovery", form: "strategy, or a [mapping](#job_recovery)", schema: anyOf(strategySchema, recoverySection.schema()), unset: "`EAGER_NEXT_REGION`",
			means: "what follows a lost machine and a failure of the user's code. One for the whole task", example: "FAILOVER", by: byOutlast,
		},
		{
			name: "spot_recovery", kind: older, form: "as `job_recovery`", schema: anyOf(strategySchema, recoverySection.schema()), unset: "",
			means: "older spelling of `job_recovery`", example: "FAILOVER", by: byOutlast,
		},
		{
			name: "priority", form: "−1000 to 1000", schema: wholeSchema(-1000, 1000), unset: "0",
			means: "who comes first when slots are scarce. One for the whole job", example: "10", by: byOutlast,
		},
		{
			name: "autostop", form: "boolean, minutes, `10m`, or a mapping", schema: autostopSchema, unset: "",
			means: "the machine of a job ends with the job, so there is nothing to stop", example: "10m", by: byNobody,
		},
		{name: "priority_class", kind: refused, instead: "it is a class of Kubernetes: write priority: and a number"},
		{name: "volumes", kind: refused, instead: "bring files with file_mounts, or let the machine mount a network file system in setup"},
		{name: "_cluster_config_overrides", kind: refused, instead: "remove it"},
		{name: "any_of", kind: refused, instead: "it stands directly under resources"},
		{name: "ordered", kind: refused, instead: "it stands directly under resources"},
	},
}

// recoverySection is the long form of job_recovery.
var recoverySection = &section{
	title: "`job_recovery`",
	fields: []fieldInfo{
		{
			name: "strategy", form: "name", schema: strategySchema, unset: "`EAGER_NEXT_REGION`",
			means: "`EAGER_NEXT_REGION`: after a loss, try the region last. `FAILOVER`: try it first. `NEVER`, an extension: a lost machine ends the task", example: "FAILOVER", by: byOutlast,
		},
		{
			name: "max_restarts_on_errors", form: "number", schema: wholeSchema(0, 1<<31-1), unset: "0",
			means: "how many failures of the user's own code are answered by a restart", example: "3", by: byOutlast,
		},
		{
			name: "recover_on_exit_codes", form: "a code or a list, 0 to 255", schema: anyOf(exitCodeSchema, schema{"type": "array", "items": exitCodeSchema}), unset: "none",
			means: "codes that are answered by a restart without being counted", example: "[33]", by: byOutlast,
		},
	},
}

// autostopSection is the long form of autostop.
var autostopSection = &section{
	fields: []fieldInfo{
		{name: "idle_minutes", schema: wholeSchema(-1, 1<<31-1)},
		{name: "down", schema: boolSchema},
		{name: "wait_for", schema: textSchema},
		{name: "hook", schema: textSchema},
		{name: "hook_timeout", schema: wholeSchema(0, 1<<31-1)},
	},
}
