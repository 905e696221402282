// Package seal keeps users' secrets secret (G12).
//
// A secret value exists in clear in three places: the submitting client, the worker that starts the user's code, and
// that code's environment. In between, in Redis and its backups, it is sealed with age (X25519):
//
//	client   Seal(recipient, values)  ──►  Redis: a blob  ──►  worker   Identity.Open(blob)
//
// A client needs only the recipient, which is public. Workers share one identity file; [LoadOrCreate] makes it once,
// also when many workers start together. To rotate it, put a new key on top of the file: the first key is the one to
// seal for, all of them open.
//
// What was opened can still escape through an error or an event that quotes it; a [Redactor] takes it out of our own
// texts.
package seal
