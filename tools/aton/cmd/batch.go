//go:build !noqueue

package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/tools/aton/internal/batch"
	"github.com/aton-project/aton/tools/cli"
)

// many are the commands for many models. They bring the queue, half of the program's size: a build with the tag noqueue has none of it.
func many() []*cobra.Command { return []*cobra.Command{newBatch(), newWorker(), newLimited()} }

// commandFlags gives the flags of the commands that batch runs, fresh ones in each call.
func commandFlags(do string) *pflag.FlagSet {
	switch do {
	case "export":
		return newExport().Flags()
	case "check":
		return newCheck().Flags()
	case "verify":
		return newVerify().Flags()
	}
	return nil
}

// recorded is the value of a flag that keeps what it was given, in order.
type recorded struct {
	pflag.Value
	name string
	to   *[]batch.Option
}

func (r recorded) Set(s string) error {
	if err := r.Value.Set(s); err != nil {
		return err
	}
	*r.to = append(*r.to, batch.Option{Name: r.name, Value: s})
	return nil
}

// sizeFlag is a number of bytes, such as 4GB or 500MB.
type sizeFlag uint64

func (s *sizeFlag) String() string {
	if *s == 0 {
		return ""
	}
	return strconv.FormatUint(uint64(*s), 10)
}

func (s *sizeFlag) Type() string { return "bytes" }

func (s *sizeFlag) Set(text string) error {
	number, factor := text, uint64(1)
	for i, unit := range []string{"kB", "MB", "GB", "TB"} {
		if before, ok := strings.CutSuffix(text, unit); ok {
			number = before
			for range i + 1 {
				factor *= 1000
			}
		}
	}
	n, err := strconv.ParseUint(strings.TrimSpace(number), 10, 63)
	if err != nil || n > (1<<62)/factor {
		return errors.New("it is a number of bytes, such as 4GB or 500MB")
	}
	*s = sizeFlag(n * factor)
	return nil
}

// working are the options that batch and worker have in common.
type working struct {
	jobs    int
	timeout time.Duration
	memory  sizeFlag
	cache   string
	noCache bool
	access  batch.Access
	silence time.Duration
}

func (w *working) flags(c *cobra.Command) {
	f := c.Flags()
	f.IntVarP(&w.jobs, "jobs", "j", runtime.NumCPU(), "how many models are done at a time on this machine")
	f.DurationVar(&w.timeout, "timeout", 0, "the time that a model may take, such as 90s or 10m; 0 is no limit")
	f.Var(&w.memory, "memory", "the memory that a model may take, such as 4GB")
	f.StringVar(&w.cache, "cache", "", "the `FOLDER` of the cache (default aton/batch in the user's folder for caches)")
	f.BoolVar(&w.noCache, "no-cache", false, "do every model, and keep nothing")
	f.StringVar(&w.access.URLs, "queue", "", "the `URL` of a NATS server with JetStream (nats:// or tls://), or of several of a cluster, with commas")
	f.StringVar(&w.access.Creds, "queue-creds", "", "a credentials `FILE` of NATS")
	f.StringVar(&w.access.NKey, "queue-nkey", "", "a `FILE` with the seed of an NKey")
	f.StringVar(&w.access.Token, "queue-token-file", "", "a `FILE` with a token")
	f.StringVar(&w.access.CA, "queue-ca", "", "a `FILE` with the certificates that the server's must be signed by")
	f.StringVar(&w.access.Cert, "queue-cert", "", "a `FILE` with a certificate to show to the server")
	f.StringVar(&w.access.Key, "queue-key", "", "a `FILE` with the key of --queue-cert")
	f.DurationVar(&w.silence, "ack-wait", batch.DefaultSilence, "how long a worker may say nothing before its model goes to another one; the same everywhere")
}

// worker makes the worker of this process.
func (w *working) worker(root string) (*batch.Worker, error) {
	if w.jobs < 0 || w.jobs > 4096 {
		return nil, cli.Misusef("--jobs: it is a number of models, not %d", w.jobs)
	}
	if w.timeout < 0 {
		return nil, cli.Misusef("--timeout: it is a time from 0 on, not %v", w.timeout)
	}
	if w.silence < time.Second {
		return nil, cli.Misusef("--ack-wait: it is a time from 1s on, not %v", w.silence)
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	build, err := batch.Build(aton.Version(), program)
	if err != nil {
		return nil, err
	}
	b := &batch.Worker{
		Commands: commandFlags, Process: batch.NewProcess(w.jobs, program, "limited"),
		Root: root, Version: aton.Version(), Build: build,
	}
	b.Name, _ = os.Hostname() // may be empty
	if !w.noCache {
		folder := w.cache
		if folder == "" {
			if folder, err = os.UserCacheDir(); err != nil {
				return nil, cli.Misusef("there is no folder for caches (%w); name one with --cache, or give --no-cache", err)
			}
			folder = filepath.Join(folder, "aton", "batch")
		}
		b.Cache = &batch.Cache{Dir: folder}
	}
	return b, nil
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

func newBatch() *cobra.Command {
	var w working
	var out, do, listen string
	var options []batch.Option
	var asJSON, upload, retry bool
	var tries int
	c := &cobra.Command{
		Use:   "batch MANIFEST|DIR -o DIR",
		Short: "Convert, check or verify many models, on all cores or several machines",
		Long: `batch runs export, check or verify on many models, each in a process of its own. A folder stands for every model file in it
(.pt, .pth, .pt2, .onnx, .ir). A manifest has a line of JSON for each model: "model" is a path (relative to the manifest) or an http(s)
URL, "name" what its output is called, and every other field an option of the command:

  {"model": "resnet.pt", "name": "vision/resnet", "input": "x:f32[N,3,224,224]", "opset": 17}

The options of the command may be given to batch too, for all models. Each model has a line in results.jsonl, in the folder of -o: status
(ok, refused, failed, timeout, memory), diagnostics, files, hashes, seconds and memory. What has its line is not done again: a command that
was killed goes on where it was when it is given again. What was made once of the same bytes, with the same options, by the same version,
comes from the cache.

--memory is held by the garbage collector, by a watcher and, on Linux, by the system (RLIMIT_DATA).

The work goes through NATS JetStream: a server in this process that opens no port, or with --listen one that 'aton worker' on other machines
comes to, or a server elsewhere with --queue. The exit status is 1 if a model is not ok.`,
		Example: `  aton batch models -o out
  aton batch models.jsonl -o out --opset 17 --timeout 2m --memory 4GB
  aton batch models.jsonl -o out --do verify --json
  aton batch models -o out --queue nats://queue:4222 --queue-creds me.creds --upload --jobs 0`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("%s takes one manifest or folder, not %d", c.CommandPath(), len(args))
			}
			return nil
		},
	}
	w.flags(c)
	f := c.Flags()
	f.StringVarP(&out, "output", "o", "", "the `FOLDER` for results.jsonl and what is written")
	cli.Choice(c, &do, "do", []string{"export", "check", "verify"}, "the command: export, check or verify")
	f.BoolVar(&asJSON, "json", false, "write each result to standard output as it comes in, as a line of JSON; errors as JSON")
	f.BoolVar(&upload, "upload", false, "send the models through the queue, for workers that do not see the files of this machine")
	f.BoolVar(&retry, "retry", false, "do again what failed or passed a limit before")
	f.IntVar(&tries, "tries", 3, "how many workers may take a model and not come to an end with it before it is set aside")
	f.StringVar(&listen, "listen", "", "`HOST:PORT` where the server in this process lets workers in")
	for _, do := range []string{"export", "check", "verify"} {
		commandFlags(do).VisitAll(func(flag *pflag.Flag) {
			if f.Lookup(flag.Name) == nil && batch.Allowed(flag.Name) {
				flag.Value = recorded{flag.Value, flag.Name, &options}
				f.AddFlag(flag)
			}
		})
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		if out == "" {
			return cli.Misusef("-o is missing: which folder should the results go to?")
		}
		if tries < 1 {
			return cli.Misusef("--tries: it is a number from 1 on, not %d", tries)
		}
		if listen != "" && w.access.URLs != "" {
			return cli.Misusef("--listen is for the server in this process: it cannot be there with --queue")
		}
		if w.jobs == 0 && listen == "" && w.access.URLs == "" {
			return cli.Misusef("--jobs 0 leaves the work to other machines: give --queue or --listen")
		}
		worker, err := w.worker("")
		if err != nil {
			return err
		}
		plan, err := batch.NewPlan(commandFlags, batch.Request{
			Models: args[0], Out: out, Do: do, Options: options, Tries: tries, Build: worker.Build,
			Limits: batch.Limits{Timeout: w.timeout, Memory: uint64(w.memory)},
		})
		if err != nil {
			return cli.Misuse(err)
		}
		worker.Root = plan.Root
		stderr := c.ErrOrStderr()
		log := func(format string, args ...any) {
			fmt.Fprintln(stderr, "warning: "+cli.Printable(fmt.Sprintf(format, args...)))
		}
		b := &batch.Batch{
			Plan: plan, Out: out, Access: w.access, Listen: listen, Worker: worker, Jobs: w.jobs, Upload: upload, Retry: retry, Silence: w.silence, Log: log,
			Listening: func(address, token string) {
				fmt.Fprintf(stderr, "workers: aton worker --queue %s --queue-token-file %s\n", address, token)
			},
		}
		show := bar(stderr, len(plan.Items), asJSON)
		lines := json.NewEncoder(c.OutOrStdout())
		lines.SetEscapeHTML(false)
		b.Progress = func(r *batch.Result, done, all int) {
			show(done)
			if asJSON {
				_ = lines.Encode(r) // who reads no more has the file
			}
		}
		ctx, cancel := stopped(c)
		defer cancel()
		began := time.Now()
		found, err := b.Run(ctx)
		show(-1)
		if err != nil {
			if errors.Is(err, context.Canceled) {
				return fmt.Errorf("stopped; the same command goes on")
			}
			return err
		}
		if worker.Cache != nil {
			if err := worker.Cache.Trim(); err != nil {
				log("the cache: %v", err)
			}
		}
		to := c.OutOrStdout()
		if asJSON {
			to = stderr
		}
		fmt.Fprintf(to, "%s%.1f s; %s\n", batch.Summary(found), time.Since(began).Seconds(), filepath.Join(out, batch.Results))
		if slices.ContainsFunc(found, func(r *batch.Result) bool { return r.Status != batch.OK }) {
			return cli.ErrQuiet
		}
		return nil
	}
	return c
}

// bar shows a person how far the work is; what it gives is called with the number of models that are done, and with -1 in the end.
func bar(w io.Writer, all int, quiet bool) func(done int) {
	if quiet || !cli.Terminal(w) {
		return func(int) {}
	}
	p := progressbar.NewOptions(all, progressbar.OptionSetWriter(w), progressbar.OptionShowCount(), progressbar.OptionShowIts(),
		progressbar.OptionSetItsString("models"), progressbar.OptionSetPredictTime(true), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
	return func(done int) {
		if done < 0 {
			_ = p.Clear() // a terminal that is gone
			return
		}
		_ = p.Set(done)
	}
}

func newWorker() *cobra.Command {
	var w working
	var root, folder string
	var anyPath bool
	var urls []string
	var idle time.Duration
	c := &cobra.Command{
		Use:   "worker --queue URL",
		Short: "Do models of a batch that runs on another machine",
		Long: `worker takes models from a queue of NATS JetStream and gives back results, until it is stopped. It does those of batches of its own
version of aton. What comes from a queue is not trusted: a worker reads files below --root and nowhere else, fetches no URL but those that
begin as one of --url, and writes nothing but results, which go through the queue. A worker may be killed at any time: the model that it
was at goes to another one.`,
		Example: `  aton worker --queue nats://queue:4222 --queue-creds worker.creds --root /models
  aton worker --queue tls://queue:4222 --queue-ca ca.pem --queue-token-file token --url https://models.example.org/ --memory 8GB`,
		Args: cobra.NoArgs,
	}
	w.flags(c)
	f := c.Flags()
	f.StringVar(&root, "root", ".", "the `FOLDER` that paths of models begin at, in which the manifest or the folder of models lies; nothing else is read")
	f.BoolVar(&anyPath, "any-path", false, "read any file: absolute paths, and links that lead out of --root")
	f.StringArrayVar(&urls, "url", nil, "the beginning of `URLS` that may be fetched; may be given several times")
	f.StringVar(&folder, "work", "", "the `FOLDER` for files that are worked on (default one in the system's folder for temporary files)")
	f.DurationVar(&idle, "idle", 0, "end when there was nothing to do for so long; 0 is never")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if w.access.URLs == "" {
			return cli.Misusef("--queue is missing: where does the work come from?")
		}
		if w.jobs == 0 {
			return cli.Misusef("--jobs: it is a number of models from 1 on, not 0")
		}
		root, err := filepath.Abs(root)
		if err != nil {
			return err
		}
		worker, err := w.worker(root)
		if err != nil {
			return err
		}
		worker.AnyPath, worker.URLs = anyPath, urls
		worker.Limits = batch.Limits{Timeout: w.timeout, Memory: uint64(w.memory)}
		free, err := worker.Home(folder)
		if err != nil {
			return err
		}
		defer free()
		ctx, cancel := stopped(c)
		defer cancel()
		q, err := batch.Dial(ctx, w.access, worker.Version, w.silence)
		if err != nil {
			return err
		}
		defer q.Close()
		return worker.Take(ctx, q, batch.Serving{Jobs: w.jobs, Idle: idle, Log: func(format string, args ...any) {
			fmt.Fprintln(c.ErrOrStderr(), "warning: "+cli.Printable(fmt.Sprintf(format, args...)))
		}})
	}
	return c
}

// newLimited is the command that the process of a model runs: words of another command behind --, within limits.
func newLimited() *cobra.Command {
	var memory uint64
	c := &cobra.Command{Use: "limited --memory BYTES -- COMMAND ...", Hidden: true, Short: "Run a command for batch", Args: cobra.MinimumNArgs(1)}
	c.Flags().Uint64Var(&memory, "memory", 0, "bytes; 0 is no limit")
	c.RunE = func(c *cobra.Command, args []string) error {
		return batch.Serve(memory, c.InOrStdin(), c.OutOrStdout(), func() batch.Report {
			var report batch.Report
			told := false
			inner := New()
			inner.SetContext(context.WithValue(context.Background(), listener{}, func(problems []cli.Problem) { report.Problems, told = problems, true }))
			var stdout, stderr strings.Builder
			report.Exit = cli.Run(inner, args, strings.NewReader(""), &stdout, &stderr)
			if args[0] == "verify" {
				report.Output = stdout.String()
			}
			var failed struct{ Errors []cli.Problem }
			if !told && json.Unmarshal([]byte(stderr.String()), &failed) == nil {
				report.Problems = failed.Errors
			}
			return report
		})
	}
	return c
}
