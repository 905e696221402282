// Package render makes text fit for a terminal.
//
// Names, environment variables, words of a provider and the output of users' code are untrusted: on a terminal, an
// escape sequence in them can rewrite what is on the screen, retitle the window or fill the clipboard. [Text] is for
// words inside our own lines and shows whatever would act as an escape. [Terminal] is for the output of users' code and
// keeps what output legitimately uses: colours, tabs, and carriage returns of progress bars.
//
// The rest is about reading with ease: ages, durations and tables that fit a narrow screen.
package render
