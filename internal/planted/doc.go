// Package planted puts one bug into each guarantee, so that the fault suite can show that it would see such a bug.
//
//	if planted.On(planted.G3) { ... } // what the bug does, at its place in the product
//
// In a normal build [On] is the constant false and the compiler removes the branch. In a build with the tag planted it is
// true for the one bug that the environment variable OUTLAST_PLANT names, such as G3. Such a build is for `make
// chaos-planted` and for the tests of chaos/check and chaos/linear only; nobody else makes one.
//
// Each bug is one that systems of this kind really had, told beside its constant. It stands at one place in the product, in
// as few lines as it takes.
package planted

// Bug names a planted bug by the guarantee that it breaks.
type Bug string

// The bugs.
const (
	G1  Bug = "G1"  // the watch takes an act that the queue lost for one that will come: nobody makes it again
	G2  Bug = "G2"  // a commit is written whoever makes it: the fence, the sequence and the statuses are not looked at
	G3  Bug = "G3"  // the next machine starts the code while the one before still runs it
	G4  Bug = "G4"  // the order to end a machine counts as given though it never was
	G5  Bug = "G5"  // a cancel that comes during the clean-up rewrites SUCCEEDED
	G6  Bug = "G6"  // one probe without an answer is a verdict
	G7  Bug = "G7"  // a launch does not look whether its job was cancelled
	G8  Bug = "G8"  // the wait between rounds of offers does not grow
	G9  Bug = "G9"  // a launch slot is kept while its job waits, and when it has ended
	G10 Bug = "G10" // a provider that is away for a moment counts as one that refuses
	G11 Bug = "G11" // a machine whose code has ended is not asked for the rest of its log
	G12 Bug = "G12" // the log line of a start shows the environment, with the secrets
	G13 Bug = "G13" // an ending of the user's code has no cause
)

// Bugs lists them all.
var Bugs = []Bug{G1, G2, G3, G4, G5, G6, G7, G8, G9, G10, G11, G12, G13}
