// Package seal keeps users' secrets secret (G12).
//
// A secret value exists in clear in three places: the submitting client, the worker that starts the user's code, and
// that code's environment. In between, in Redis and its backups, it is sealed with age (X25519):
//
//	client   Seal(recipient, values)  ──►  Redis: a blob  ──►  worker   Identity.Open(blob)
//
// A client needs only the recipient, which is public. Workers share one identity: a file, which [LoadOrCreate] makes
// once, also when many workers start together, or a text that [Parse] reads. It may hold several keys: the first is the
// one to seal for, all of them open. [Rotate] puts a new key on top, and a [Keyring] finds it while its worker runs.
// What was sealed before is not sealed anew: it ends with its job, and then the old key may go.
//
// What was opened can still escape through an error or an event that quotes it; a [Redactor] takes it out of our own
// texts.
package seal
