//go:build planted

package planted

import (
	"os"
	"sync"
)

// chosen is the bug that this process has.
var chosen = sync.OnceValue(func() Bug { return Bug(os.Getenv("OUTLAST_PLANT")) })

// On reports whether a bug is to be there: the one that OUTLAST_PLANT names.
func On(b Bug) bool { return b == chosen() }
