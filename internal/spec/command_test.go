package spec

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestFromCommand ensures what a command becomes.
func TestFromCommand(t *testing.T) {
	j, err := FromCommand([]string{"/usr/bin/python3", "train.py", "--lr", "1e-3", "--name=it's mine", "$HOME"}, Options{
		Env: map[string]string{"A": "1"}, Secret: map[string]string{"K": "s"}, User: "eve",
	})
	if err != nil {
		t.Fatal(err)
	}
	task := j.Request.Tasks[0]
	if want := `/usr/bin/python3 train.py --lr 1e-3 '--name=it'\''s mine' '$HOME'`; task.Run != want {
		t.Errorf("run %q, want %q", task.Run, want)
	}
	if j.Request.Name != "python3" || task.Name != "python3" || j.Request.User != "eve" || task.Envs["A"] != "1" || j.Secrets[0]["K"] != "s" {
		t.Errorf("job %+v", j.Request)
	}
	with, err := FromCommand([]string{"true"}, Options{Overrides: []Override{{Flag: "--workdir", Field: "workdir", Values: []string{"."}}}})
	if err != nil || len(with.Unused) != 0 {
		t.Errorf("notes on a command with a workdir: %q, error %v", with.Unused, err)
	}
	if len(task.Resources.Any) != 1 || j.Workdirs[0] != "" {
		t.Errorf("resources %+v, workdirs %q", task.Resources, j.Workdirs)
	}
}

// TestFromCommandProblems ensures that what can not be run is refused, with all reasons at once.
func TestFromCommandProblems(t *testing.T) {
	for _, tt := range []struct {
		argv []string
		opt  Options
		want string
	}{
		{nil, Options{}, "command: is empty (write it after --)"},
		{[]string{"a", "\x00"}, Options{Name: "\n"}, "argument 1: is not UTF-8 text without NUL characters\n--name: is empty"},
		{[]string{"a"}, Options{Env: map[string]string{"A": "", "A-B": ""}, Secret: map[string]string{"A": ""}},
			"--env A-B: is not the name of a variable: letters, digits and _ only, not starting with a digit\n" +
				"secrets.A: is also among envs (keep it in one of the two, and give it with the option of that one)"},
	} {
		_, err := FromCommand(tt.argv, tt.opt)
		if err == nil || err.Error() != tt.want {
			t.Errorf("%q: error\n%v\nwant\n%s", tt.argv, err, tt.want)
		}
	}
}

// TestFirstWord ensures that bash takes the first word for a program, whatever it is called.
func TestFirstWord(t *testing.T) {
	for first, want := range map[string]string{
		"python": "python", "A=1": "'A=1'", "if": "'if'", "time": "'time'", "~/x": "'~/x'", "!": "'!'", "{": "'{'", "%1": "'%1'", "": "''",
	} {
		if got := commandLine([]string{first}); got != want {
			t.Errorf("%q is written %s, want %s", first, got, want)
		}
	}
}

// TestBashSplitsItBack ensures with a real bash that every argument arrives as it was given. One bash sees many
// command lines, since starting one takes longer than everything else here.
func TestBashSplitsItBack(t *testing.T) {
	arg := rapid.StringOfN(rapid.OneOf(rapid.RuneFrom([]rune("ab'\"\\$`!*?[]{}()<>|&;#~=% \t\n\r-")), rapid.Rune()), 0, 8, -1).
		Filter(func(s string) bool { return !strings.ContainsRune(s, 0) })
	var script strings.Builder
	var want []string
	rapid.Check(t, func(t *rapid.T) {
		args := rapid.SliceOfN(arg, 1, 5).Draw(t, "args")
		script.WriteString(commandLine(append([]string{"show"}, args...)) + "\n")
		want = append(want, args...)
	})
	cmd := exec.Command("bash")
	cmd.Stdin = strings.NewReader("show() { printf '%s\\0' \"$@\"; }\n" + script.String())
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
}
