// Package browsertest holds the tests of the page in a real browser, headless Chromium. They have a package of their own
// because they take seconds. Without Chromium they fail, unless OUTLAST_NO_BROWSER is set.
package browsertest
