// Package doccheck holds no code, only tests: what the documentation says of the repository must be there.
//
// It is a package of its own because it looks at all others and belongs to none. When one of its tests fails, the text
// and the code have parted, and one of the two has to follow the other.
package doccheck
