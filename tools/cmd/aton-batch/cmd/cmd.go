// Package cmd is the command aton with the commands for many models, batch and worker, callable in this process.
package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/aton-project/aton"
	single "github.com/aton-project/aton/tools/cmd/aton/cmd"
	"github.com/aton-project/aton/tools/lib/batch"
	"github.com/aton-project/aton/tools/lib/cli"
)

// Main runs aton with batch and worker, and gives its exit status.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return single.MainWith(many{}, args, stdin, stdout, stderr)
}

type many struct{}

// worker makes the worker of this process.
func worker(o *single.WorkOptions, root string, log func(format string, args ...any)) (*batch.Worker, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	program := os.Getenv(single.Program) // aton is smaller than this program, and quicker to start
	if program == "" {
		program = self
	} else if said, err := exec.Command(program, "--version").Output(); err != nil || !strings.HasSuffix(strings.TrimSpace(string(said)), aton.Version()) {
		return nil, fmt.Errorf("%s and %s (%s) have different versions; use both from one release", program, self, aton.Version())
	}
	build, err := batch.Build(aton.Version(), program)
	if err != nil {
		return nil, err
	}
	w := &batch.Worker{
		Commands: single.CommandFlags, Process: batch.NewProcess(o.Jobs, program, "limited"), Root: root, Version: aton.Version(), Build: build, Warn: log,
	}
	w.Name, _ = os.Hostname() // may be empty
	if !o.NoCache {
		folder := o.Cache
		if folder == "" {
			if folder, err = os.UserCacheDir(); err != nil {
				log("there is no cache: %v; --cache names a folder", err)
				return w, nil
			}
			folder = filepath.Join(folder, "aton", "batch")
			_ = os.Chmod(folder, 0o700) // there may be none yet, which will have that mode
		}
		w.Cache = &batch.Cache{Dir: folder}
	}
	return w, nil
}

func access(o *single.WorkOptions) batch.Access {
	return batch.Access{URLs: o.Queue, Creds: o.Creds, NKey: o.NKey, Token: o.Token, CA: o.CA, Cert: o.Cert, Key: o.Key}
}

// stopped is a context that ends with a signal from the keyboard or the system, so that what was taken is given back at once.
func stopped(c *cobra.Command) (context.Context, context.CancelFunc) {
	ctx := c.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	signal.Reset(os.Interrupt, syscall.SIGTERM) // main ends the process at once
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
}

// warnings writes what goes wrong and ends nothing.
func warnings(w io.Writer) func(format string, args ...any) {
	return func(format string, args ...any) {
		_, _ = cli.Fprintf(w, "warning: %s\n", fmt.Sprintf(format, args...))
	}
}

func (many) Batch(c *cobra.Command, o *single.BatchOptions) error {
	stderr := c.ErrOrStderr()
	log := warnings(stderr)
	w, err := worker(&o.WorkOptions, "", log)
	if err != nil {
		return err
	}
	var options []batch.Option
	for _, g := range o.Given {
		options = append(options, batch.Option{Name: g.Name, Value: g.Value})
	}
	plan, err := batch.NewPlan(single.CommandFlags, batch.Request{
		Models: o.Models, Out: o.Output, Do: o.Do, Options: options, Tries: o.Tries, Build: w.Build,
		Limits: batch.Limits{Timeout: o.Timeout, Memory: uint64(o.Memory)},
	})
	if err != nil {
		return cli.Misuse(err)
	}
	w.Root = plan.Root
	b := &batch.Batch{
		Plan: plan, Out: o.Output, Access: access(&o.WorkOptions), Listen: batch.Listen{Address: o.Listen, Config: o.ListenConfig}, Worker: w, Jobs: o.Jobs, Upload: o.Upload, Retry: o.Retry,
		Silence: o.Silence, Patience: o.Patience, Log: log,
		Listening: func(address, token string) {
			if token != "" {
				token = " --queue-token-file " + token
			}
			fmt.Fprintf(stderr, "workers: aton worker --queue %s%s\n", address, token)
		},
	}
	show := bar(stderr, len(plan.Items), o.JSON)
	b.Progress = func(r *batch.Result, done, all int) {
		show(done)
		if o.JSON {
			_ = cli.EncodeJSON(c.OutOrStdout(), r, false) // who reads no more has the file
		}
	}
	ctx, cancel := stopped(c)
	defer cancel()
	began := time.Now()
	found, err := b.Run(ctx)
	show(-1)
	if errors.Is(err, context.Canceled) {
		return errors.New("stopped; run the same command to continue")
	}
	if w.Cache != nil && err == nil {
		if err := w.Cache.Trim(); err != nil {
			log("the cache: %v", err)
		}
	}
	to := c.OutOrStdout()
	if o.JSON {
		to = stderr
	}
	if err != nil && len(found) == 0 {
		return err
	}
	fmt.Fprintf(to, "%s%s: %.1f s\n", batch.Summary(found), filepath.Join(o.Output, batch.Results), time.Since(began).Seconds())
	if err != nil {
		return err
	}
	if slices.ContainsFunc(found, func(r *batch.Result) bool { return r.Status != batch.OK }) {
		return cli.ErrQuiet
	}
	return nil
}

// bar shows a person how far the work is; what it gives is called with the number of models that are done, and with -1 in the end.
func bar(w io.Writer, all int, quiet bool) func(done int) {
	if quiet || !cli.Terminal(w) {
		return func(int) {}
	}
	p := progressbar.NewOptions(all, progressbar.OptionSetWriter(cli.Raw(w)), progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetElapsedTime(false), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
	began, before := time.Now(), -1
	return func(done int) {
		if done < 0 {
			_ = p.Clear() // a terminal that is gone
			return
		}
		if before < 0 {
			before = done - 1 // those that a batch before this one has done
		}
		p.Describe(pace(done-before, all-done, time.Since(began)))
		_ = p.Set(done)
	}
}

// pace says how many models are done in a time, those of this process alone, and how long the others will take.
func pace(done, left int, took time.Duration) string {
	if done <= 0 || took <= 0 {
		return ""
	}
	each := took / time.Duration(done)
	return fmt.Sprintf("%.1f models/s, %s left", float64(done)/took.Seconds(), (time.Duration(left) * each).Round(time.Second))
}

func (many) Worker(c *cobra.Command, o *single.WorkerOptions) error {
	root, err := filepath.Abs(o.Root)
	if err != nil {
		return err
	}
	log := warnings(c.ErrOrStderr())
	w, err := worker(&o.WorkOptions, root, log)
	if err != nil {
		return err
	}
	w.AnyPath, w.URLs = o.AnyPath, o.URLs
	w.Limits = batch.Limits{Timeout: o.Timeout, Memory: uint64(o.Memory)}
	free, err := w.Home(o.Folder)
	if err != nil {
		return err
	}
	defer free()
	ctx, cancel := stopped(c)
	defer cancel()
	q, err := batch.Dial(access(&o.WorkOptions), w.Version, batch.Taker, log)
	if err != nil {
		return err
	}
	defer q.Close()
	return w.Take(ctx, q, batch.Serving{Jobs: o.Jobs, Idle: o.Idle, Log: log})
}
