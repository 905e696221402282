package spec

// Who honours a field, for the reference, which says what the words mean.
const (
	byOutlast   = "Outlast"
	byAgent     = "the agent"
	byChoice    = "the choice"
	byProvider  = "the provider; `local` refuses it"
	byProvider0 = "the provider; on `local` no effect"
	byNobody    = "nobody: no effect"
)

// The fields of SkyPilot's task YAML (docs/source/reference/yaml-spec.rst), all of them, and ours.

// headerSection is the first document of a chain, if it is no task.
var headerSection = &section{
	title: "The first document of a chain",
	intro: "It is optional, and no task: it names the job and says what concerns all of it.",
	fields: append([]fieldInfo{
		{
			name: "name", form: "text", schema: nameSchema, unset: "the file's name",
			means: "name of the job", example: "nightly", by: byOutlast,
		},
		{
			name: "execution", form: "`serial`", schema: oneOf("serial"), unset: "`serial`",
			means: "the tasks run one after the other. `parallel` is refused: submit the tasks as jobs of their own", example: "serial", by: byOutlast,
		},
		{name: "primary_tasks", kind: refused, instead: "it belongs to execution: parallel: submit the tasks as jobs of their own"},
		{name: "termination_delay", kind: refused, instead: "it belongs to execution: parallel: submit the tasks as jobs of their own"},
	}, jobFields...),
}

// jobFields concern a whole job: they stand at the top of its only task, or in the first document of a chain.
var jobFields = []fieldInfo{
	{
		name: "webhooks", kind: extension, form: "list of [webhooks](#a-webhook)", schema: listOf(webhookSection.schema()), unset: "none",
		means: "URLs that are told of [events](reference.md#events). At the top of the only task, or in the first document of a chain", example: "[{url: https://example.com/hook, events: [failed]}]", by: byOutlast,
	},
	{
		name: "log_retention", kind: extension, form: "duration, or `forever`", schema: anyOf(durationSchema, oneOf("forever")), unset: "as the deployment has it",
		means: "how long the output is kept after the job's end. Same place as `webhooks`", example: "30d", by: byOutlast,
	},
	{
		name: "redact_secrets", kind: extension, form: "boolean", schema: boolSchema, unset: "`true`",
		means: "the values of secrets are taken out of the job's own output. Same place as `webhooks`", example: "false", by: byOutlast,
	},
}

// taskSection is a task: the only document of a file, or each of a chain but the header.
var taskSection = &section{
	title: "A task",
	fields: append([]fieldInfo{
		{
			name: "name", form: "text, up to 256 printable characters", schema: nameSchema, unset: "the file's name",
			means: "for people; that of the only task is the job's, in a chain it tells tasks apart", example: "train", by: byOutlast,
		},
		{
			name: "run", form: "bash", schema: textSchema, unset: "none",
			means: "the code. A task without it succeeds at once and gets no machine", example: "python train.py", by: byAgent,
		},
		{
			name: "setup", form: "bash", schema: textSchema, unset: "none",
			means: "runs before `run` on every machine. If it fails, the task is FAILED_SETUP", example: "pip install -r requirements.txt", by: byAgent,
		},
		{
			name: "envs", form: "names to values", schema: variablesSchema, unset: "none",
			means: "environment. Values arrive as they are written. `null`: to be given with `--env` or `--env-file`", example: "{EPOCHS: 5, DATA: null}", by: byAgent,
		},
		{
			name: "secrets", form: "names to values", schema: variablesSchema, unset: "none",
			means: "the same, but sealed. `null`: to be given with `--secret` or `--secret-file`", example: "{API_KEY: null}", by: byAgent,
		},
		{
			name: "workdir", form: "path of a local folder", schema: textSchema, unset: "none",
			means: "taken along: becomes the folder in which `setup` and `run` start. `.git` stays behind. A path starts where the job file is. A git repository is refused: clone it in `setup`", example: ".", by: byAgent,
		},
		{
			name: "file_mounts", form: "paths on the node to [sources](#a-file-mount)", schema: mountsSchema, unset: "none",
			means: "files and folders that are brought to the node. A local source is taken along as `workdir` is", example: "{~/data.csv: ./data.csv}",
			by: byAgent + "; addresses: " + byProvider,
		},
		{
			name: "storage_mounts", kind: older, form: "as `file_mounts`", schema: mountsSchema, unset: "none",
			means: "older spelling of `file_mounts`", example: "{/data: {source: \"s3://bucket\"}}", by: "as `file_mounts`",
		},
		{
			name: "num_nodes", form: "1 or more", schema: wholeSchema(1, maxNumNodes), unset: "1",
			means: "machines of the task, all or none", example: "1", by: "the provider; `local` has 1 only",
		},
		{
			name: "resources", form: "[resources](#resources)", schema: resourcesSection.schema(), unset: "any machine",
			means: "which machines would do", example: "{cpus: 4+}", by: "see there",
		},
		{
			name: "event_callback", form: "bash", schema: textSchema, unset: "none",
			means: "run by a worker at each [event](reference.md#events). What becomes of it changes nothing for the job", example: "echo \"$JOB_ID is $JOB_STATUS\"", by: byOutlast,
		},
		{
			name: "api_server_access", form: "`false`", schema: schema{"const": false}, unset: "`false`",
			means: "there is no API server that a job could reach, so `true` is refused", example: "false", by: byNobody,
		},
		{
			name: "config", form: "mapping", schema: configSchema, unset: "none",
			means: "settings for clouds. Those of clouds that Outlast has no provider for concern no machine that a job can get: " + quoted(idleConfig) + ". All others are refused by name", example: "{kubernetes: {provision_timeout: 900}}", by: byNobody,
		},
		{
			name: "experimental", kind: older, form: "`{config_overrides: ...}`", schema: objectOf(map[string]schema{"config_overrides": configSchema}), unset: "none",
			means: "older spelling of `config`", example: "{config_overrides: {kubernetes: {provision_timeout: 900}}}", by: byNobody,
		},
		{
			name: "max_duration", kind: extension, form: "duration", schema: durationSchema, unset: "no limit",
			means: "of the user's code, in all attempts together. After it, the task is ended and FAILED", example: "12h", by: byOutlast,
		},
		{
			name: "max_wait", kind: extension, form: "duration", schema: durationSchema, unset: "no limit",
			means: "how long the task may be without a machine in one go. After it, it is FAILED_NO_RESOURCE", example: "2h", by: byOutlast,
		},
		{
			name: "grace", kind: extension, form: "duration up to 1h", schema: durationSchema, unset: "30s",
			means: "between TERM and KILL when the code is stopped", example: "90s", by: byAgent,
		},
		{
			name: "on_notice", kind: extension, form: "`none`, a signal, or [more](#on_notice)", schema: anyOf(signalSchema, noticeSection.schema()), unset: "`TERM`",
			means: "what happens on the node when the provider gives notice that it takes the machine", example: "USR1", by: byAgent,
		},
		{
			name: "inputs", form: "addresses to GB", schema: estimateSchema, unset: "none",
			means: "what the task reads: an estimate for SkyPilot's optimizer, which weighs transfers against prices", example: "{\"s3://bucket\": 150}", by: byNobody,
		},
		{
			name: "outputs", form: "addresses to GB", schema: estimateSchema, unset: "none",
			means: "the same of what it writes", example: "{\"s3://bucket\": 0.5}", by: byNobody,
		},
		{name: "volumes", kind: refused, instead: "bring files with file_mounts, or let the machine mount a network file system in setup"},
		{name: "execution", kind: refused, instead: "it belongs into a first document that is no task"},
		{name: "service", kind: refused, instead: "it describes a service, and this runs jobs that end: remove it to run the rest as a job"},
		{name: "pool", kind: refused, instead: "it describes a pool of workers: every job gets machines of its own here"},
	}, jobFields...),
}

// noticeSection is what on_notice may hold.
var noticeSection = &section{
	title: "`on_notice`",
	intro: "A word is the signal. The notice file appears in any case.",
	fields: []fieldInfo{
		{
			name: "signal", kind: extension, form: "`none` or a signal", schema: signalSchema, unset: "`TERM`",
			means: "which signal `run` gets: TERM, INT, HUP, USR1, USR2, or none", example: "INT", by: byAgent,
		},
		{
			name: "run", kind: extension, form: "bash", schema: textSchema, unset: "none",
			means: "runs beside `run`, and has no longer than the notice", example: "./save.sh", by: byAgent,
		},
	},
}

// webhookSection is one of webhooks.
var webhookSection = &section{
	title: "A webhook",
	intro: "A URL alone is a webhook, too: `webhooks: [https://example.com/hook]`.",
	fields: []fieldInfo{
		{
			name: "url", kind: extension, form: "http(s) URL", schema: urlSchema, unset: "",
			means: "who is told. One without a password: see `url_secret`", example: "https://example.com/hook", by: byOutlast,
		},
		{
			name: "url_secret", kind: extension, form: "name of a secret", schema: variableSchema, unset: "",
			means: "the secret of the job that holds the URL: some URLs are passwords. Instead of `url`", example: "SLACK_URL", by: byOutlast,
		},
		{
			name: "events", kind: extension, form: "list of words", schema: anyOf(listOf(eventSchema), eventSchema), unset: "all",
			means: "of what: a status in lower case, or " + quoted(callbackEvents) + "", example: "[succeeded, failed]", by: byOutlast,
		},
		{
			name: "sign_with", kind: extension, form: "name of a secret", schema: variableSchema, unset: "not signed",
			means: "the secret of the job that signs what is sent", example: "HOOK_KEY", by: byOutlast,
		},
	},
}

// mountSection is the long form of a file mount.
var mountSection = &section{
	title: "A file mount",
	intro: "A path or an address alone is a source: `~/data.csv: ./data.csv`, `/data: s3://bucket/path`. In paths and sources, `$NAME` and\n" +
		"`${NAME}` stand for a variable of `envs`; nowhere else in a file is anything substituted. A bucket is mounted unless\n" +
		"`mode` says otherwise; an address alone is copied.",
	fields: []fieldInfo{
		{
			name: "source", form: "address or local path", schema: anyOf(textSchema, schema{"type": "array", "maxItems": 1, "items": textSchema}), unset: "the bucket `name` in `store`",
			means: "what is brought. A local path needs `mode: COPY`, and is taken along as `workdir` is", example: "s3://bucket/path", by: "see `file_mounts`",
		},
		{
			name: "name", form: "name of a bucket", schema: textSchema, unset: "none",
			means: "with `store`: the bucket, which must exist. Nothing makes a bucket", example: "my-bucket", by: "see `file_mounts`",
		},
		{
			name: "store", form: quoted(storeNames()), schema: orVariable(anyCase(storeNames()...)), unset: "",
			means: "whose bucket `name` is", example: "s3", by: "see `file_mounts`",
		},
		{
			name: "mode", form: "`MOUNT`, `COPY` or `MOUNT_CACHED`", schema: orVariable(anyCase(mountModes...)), unset: "`MOUNT`",
			means: "mounted, copied once, or mounted with a local cache that is written back", example: "COPY", by: "see `file_mounts`",
		},
		{
			name: "persistent", form: "boolean", schema: boolSchema, unset: "`true`",
			means: "no bucket is made, so none is deleted, either", example: "true", by: byNobody,
		},
		{name: "type", kind: refused, instead: "write mode: COPY, MOUNT or MOUNT_CACHED"},
		{name: "config", kind: refused, instead: "remove it: there is nothing to tune"},
		{name: "force_delete", kind: refused, instead: "remove it: no bucket is ever deleted"},
		{name: "_is_sky_managed", kind: refused, instead: "remove it"},
	},
}
