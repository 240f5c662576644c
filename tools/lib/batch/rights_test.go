package batch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
)

// nkey makes an NKey, and writes its seed into a file.
func nkey(t *testing.T) (public, file string) {
	t.Helper()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	if public, err = pair.PublicKey(); err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "seed")
	if err := os.WriteFile(file, seed, 0o600); err != nil {
		t.Fatal(err)
	}
	return public, file
}

// TestRights runs a batch by the configuration that docs/batch.md has: with TLS on both sides and NKeys. A worker does its items, and
// cannot read results, outputs and items of others, nor remove anything, whether it sees the models' files or gets them by the queue.
func TestRights(t *testing.T) {
	for _, upload := range []bool{false, true} {
		t.Run(fmt.Sprint("upload=", upload), func(t *testing.T) { testRights(t, upload) })
	}
}

func testRights(t *testing.T, upload bool) {
	page, err := os.ReadFile("../../../docs/batch.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "### A team")
	_, config, _ := strings.Cut(section, "```text\n")
	config, _, ok := strings.Cut(config, "```")
	if !ok {
		t.Fatal("the page has no configuration")
	}
	cert, key := certificate(t)
	forBatch, batchSeed := nkey(t)
	forWorker, workerSeed := nkey(t)
	_, strangerSeed := nkey(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	file := filepath.Join(t.TempDir(), "server.conf")
	text := strings.NewReplacer("0.0.0.0:4222", address, "server-key.pem", key, "server.pem", cert, "ca.pem", cert, "BATCH", forBatch, "WORKER", forWorker).Replace(config)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	b := newBench(t, map[string]string{"a.ir": "fine a", "b.ir": "fine b"})
	started := make(chan string, 1)
	b.change = func(batch *Batch) {
		batch.Access, batch.Listen, batch.Jobs, batch.Upload = Access{NKey: batchSeed}, Listen{Config: file}, 0, upload
		batch.Listening = func(address, _ string) { started <- address }
	}
	type end struct {
		found []*Result
		err   error
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended := make(chan end, 1)
	whole := b.batch()
	go func() {
		found, err := whole.Run(ctx)
		ended <- end{found, err}
	}()
	select {
	case <-started:
	case e := <-ended:
		t.Fatal(e.err)
	}
	access := Access{URLs: "tls://" + address, CA: cert, Cert: cert, Key: key, NKey: workerSeed}
	for what, change := range map[string]func(*Access){
		"another key": func(a *Access) { a.NKey = strangerSeed }, "no key": func(a *Access) { a.NKey = "" },
		"no certificate": func(a *Access) { a.Cert, a.Key = "", "" }, "an unknown server": func(a *Access) { a.CA = "" },
	} {
		a := access
		change(&a)
		if q, err := Dial(a, "1", Taker, nil); err == nil {
			t.Errorf("%s: it is let in", what)
			q.Close()
		}
	}
	q, err := Dial(access, "1", Taker, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	root := filepath.Join(b.dir, "models")
	if upload {
		root = t.TempDir()
	}
	w := b.worker(root)
	w.Folder = t.TempDir()
	// what the worker may not, while there are items, results and outputs of others
	var c jetstream.Consumer
	for c == nil && ctx.Err() == nil {
		if c, err = q.consumer(ctx); err != nil {
			t.Fatal(err)
		}
	}
	id, err := os.ReadFile(b.out(".aton/job"))
	if err != nil {
		t.Fatal(err)
	}
	job := string(id)
	var kv jetstream.KeyValue
	for kv == nil && ctx.Err() == nil { // it is made after the consumer
		if kv, err = q.js.KeyValue(ctx, results+job); err != nil && !errors.Is(err, jetstream.ErrBucketNotFound) {
			t.Fatal(err)
		}
	}
	violations := make(chan error, 100)
	q.nc.SetErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { violations <- err })
	refused := func(what string, ask func(ctx context.Context) error) {
		t.Helper()
		brief, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		asked := make(chan error, 1)
		go func() { asked <- ask(brief) }()
		var err error
		select {
		case err = <-violations: // the server says it beside the answer, which does not come
			cancel()
			<-asked
			for len(violations) > 0 {
				<-violations
			}
		case err = <-asked:
		}
		if !errors.Is(err, nats.ErrPermissionViolation) {
			t.Errorf("a worker can %s: %v", what, err)
		}
	}
	listen := func(subject string) func(context.Context) error {
		return func(ctx context.Context) error {
			s, err := q.nc.SubscribeSync(subject)
			if err == nil {
				_, err = s.NextMsgWithContext(ctx)
			}
			return err
		}
	}
	refused("read results", func(ctx context.Context) error {
		_, err := kv.Get(ctx, probe)
		return err
	})
	refused("watch results", func(ctx context.Context) error {
		_, err := q.js.CreateOrUpdateConsumer(ctx, "KV_"+results+job, jetstream.ConsumerConfig{FilterSubject: "$KV.>"})
		return err
	})
	part := outputs.subject(job, strings.Repeat("0", 32), strings.Repeat("0", 64), "0")
	if _, err := q.js.Publish(ctx, part, []byte("an output")); err != nil {
		t.Error("a worker cannot write outputs:", err)
	}
	refused("read outputs", func(ctx context.Context) error {
		s, err := q.js.Stream(ctx, outputs.stream)
		if err == nil {
			_, err = s.GetLastMsgForSubject(ctx, part)
		}
		return err
	})
	refused("read outputs by their number", func(ctx context.Context) error {
		s, err := q.js.Stream(ctx, outputs.stream)
		if err == nil {
			_, err = s.GetMsg(ctx, 1)
		}
		return err
	})
	for _, direct := range []string{"$JS.API.DIRECT.GET." + outputs.stream, "$JS.API.DIRECT.GET." + outputs.stream + "." + part,
		"$JS.API.DIRECT.GET." + files.stream, "$JS.API.DIRECT.GET." + files.stream + "." + part, "$JS.API.DIRECT.GET.KV_" + results + job + "." + resultSubject(job, probe)} {
		refused("get directly by "+direct, func(ctx context.Context) error {
			_, err := q.nc.RequestWithContext(ctx, direct, nil)
			return err
		})
	}
	refused("listen to outputs", func(ctx context.Context) error {
		_, err := q.js.CreateOrUpdateConsumer(ctx, outputs.stream, jetstream.ConsumerConfig{})
		return err
	})
	refused("listen to models", func(ctx context.Context) error {
		_, err := q.js.CreateOrUpdateConsumer(ctx, files.stream, jetstream.ConsumerConfig{})
		return err
	})
	refused("listen to outputs as they come", listen(outputs.subjects+".>"))
	refused("listen to results as they come", listen("$KV.>"))
	refused("remove outputs", func(ctx context.Context) error { return q.drop(ctx, outputs.stream, outputs.subjects+".>") })
	refused("put models into the queue", func(ctx context.Context) error {
		_, err := q.js.Publish(ctx, files.subject(job, strings.Repeat("0", 64), "0"), nil)
		return err
	})
	refused("read all items", func(ctx context.Context) error {
		_, err := q.js.CreateOrUpdateConsumer(ctx, stream, jetstream.ConsumerConfig{})
		return err
	})
	refused("remove the stream", func(ctx context.Context) error { return q.js.DeleteStream(ctx, stream) })
	refused("remove results", func(ctx context.Context) error { return q.js.DeleteKeyValue(ctx, results+job) })
	refused("put items into the queue", func(ctx context.Context) error {
		_, err := q.js.Publish(ctx, subjects+".x."+job+".x", nil)
		return err
	})
	refused("listen to the batch", listen(string(Coordinator)+".>"))
	working, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- w.Take(working, q, Serving{Jobs: 1, Log: t.Logf}) }()
	e := <-ended
	stop()
	if err := errors.Join(e.err, <-done); err != nil {
		t.Fatal(err)
	}
	for _, r := range e.found {
		if text, err := os.ReadFile(b.out(r.Name + ".onnx")); r.Status != OK || err != nil || string(text) != "made of fine "+r.Name {
			t.Errorf("%+v: %q, %v", r, text, err)
		}
	}
}
