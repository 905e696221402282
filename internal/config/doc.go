// Package config holds what an operator can set, for the worker and for the client.
//
// A setting has one key, and is looked for in four places; the first that has it wins:
//
//	flag         --unreachable-elapsed 90s
//	environment  OUTLAST_UNREACHABLE_ELAPSED=90s         (set to nothing counts as not set)
//	file         unreachable: {elapsed: 90s}             (--config, OUTLAST_CONFIG, or config.yaml in the user's
//	                                                      configuration directory, ~/.config/outlast on Linux)
//	default
//
// The file is strict: a key that is not known is an error with its line and, if one is near, the key that was meant. So
// is a value of the wrong kind. [Config.Origin] tells where a value came from. Every key is in one table, in settings.go.
//
// Secrets (the Redis password, the HTTP token) are taken out when a Config is printed, and no error of this
// package quotes one.
//
// The package also holds what follows from the settings: Redis clients ([RedisURL]), and the file through
// which a client finds a running `worker dev` ([WriteDev], [ReadDev]).
package config
