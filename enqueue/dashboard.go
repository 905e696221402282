package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"runtime"

	"github.com/spf13/cobra"
)

// page is where a worker shows its pages.
type page struct {
	URL    string `json:"url"`
	Worker string `json:"worker"`
	Host   string `json:"host"`
	Remote bool   `json:"remote"` // on another computer, which shows it to itself only
}

func dashboardCommand(a *app) *cobra.Command {
	var noOpen bool
	c := &cobra.Command{
		Use:   "dashboard",
		Short: "Open the page of the deployment",
		Long: `Print the address of a worker's page, and on a terminal open it in a browser. Any worker shows the
whole deployment; one on this computer is preferred.`,
		Example: "  enqueue dashboard\n  enqueue dashboard --no-open",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			d, err := a.deployment(c.Context())
			if err != nil {
				return err
			}
			workers, _, err := d.workers(c.Context())
			if err != nil {
				return err
			}
			host, _ := os.Hostname()
			p, err := choosePage(workers, host)
			if err != nil {
				return err
			}
			return a.print(p, func() error {
				if p.Remote {
					a.say("worker %s shows it to its own computer only. From here: ssh -L 8080:%s %s", p.Worker, hostPort(p.URL), p.Host)
				} else if a.terminal && !noOpen {
					a.browse(p.URL)
				}
				_, err := fmt.Fprintln(a.out, p.URL)
				return err
			})
		},
	}
	c.Flags().BoolVar(&noOpen, "no-open", false, "only print the address")
	return c
}

// hostName is what a host may be called that stands in a line for people to paste into a shell.
var hostName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.:-]*$`)

var errNoPage = errors.New("no worker with a page has reported lately")

// choosePage picks the page that is best reached from a host: one here, then one that others may reach. What workers say
// of themselves comes out of Redis and is given to a browser: only what is plainly a web address is taken.
func choosePage(workers []workerAccount, here string) (page, error) {
	best, rank := page{}, 0
	for _, w := range workers {
		u, err := url.Parse(w.URL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || w.State == "silent" || !hostName.MatchString(w.Host) {
			continue
		}
		ip := net.ParseIP(u.Hostname())
		own := u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
		if ip != nil && ip.IsUnspecified() { // it listens everywhere
			u.Host = net.JoinHostPort(w.Host, u.Port())
		}
		p, r := page{u.String(), w.Name, w.Host, own && w.Host != here}, 3
		switch {
		case p.Remote:
			r = 1
		case w.Host != here:
			r = 2
		}
		if r > rank {
			best, rank = p, r
		}
	}
	if rank == 0 {
		return page{}, errNoPage
	}
	return best, nil
}

func hostPort(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

// browse opens an address in a browser, and leaves it alone. That there is none is no error: the address is printed.
func (a *app) browse(address string) {
	opener := "xdg-open"
	if runtime.GOOS == "darwin" {
		opener = "open"
	}
	if err := exec.Command(opener, address).Start(); err != nil {
		a.say("no browser opens: %v", err)
	}
}
