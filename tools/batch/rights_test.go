package batch

import (
	"context"
	"errors"
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
// cannot read results, outputs and items of others, nor remove anything.
func TestRights(t *testing.T) {
	page, err := os.ReadFile("../../docs/batch.md")
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
		batch.Access, batch.Listen, batch.Jobs = Access{NKey: batchSeed}, Listen{Config: file}, 0
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
	w := b.worker(filepath.Join(b.dir, "models"))
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
	refused := func(what string, ask func(ctx context.Context) error) {
		t.Helper()
		brief, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		if err := ask(brief); err == nil {
			t.Errorf("a worker can %s", what)
		}
	}
	refused("read results", func(ctx context.Context) error {
		kv, err := q.js.KeyValue(ctx, results+job)
		if err != nil {
			return err
		}
		_, err = kv.Get(ctx, probe)
		if errors.Is(err, jetstream.ErrKeyNotFound) {
			return nil
		}
		return err
	})
	refused("watch results", func(ctx context.Context) error {
		_, err := q.js.CreateOrUpdateConsumer(ctx, "KV_"+results+job, jetstream.ConsumerConfig{FilterSubject: "$KV.>"})
		return err
	})
	refused("read outputs", func(ctx context.Context) error {
		_, err := q.js.CreateOrUpdateConsumer(ctx, "OBJ_"+outputs+job, jetstream.ConsumerConfig{})
		return err
	})
	refused("read all items", func(ctx context.Context) error {
		_, err := q.js.CreateOrUpdateConsumer(ctx, stream, jetstream.ConsumerConfig{})
		return err
	})
	refused("remove the stream", func(ctx context.Context) error { return q.js.DeleteStream(ctx, stream) })
	refused("remove results", func(ctx context.Context) error { return q.js.DeleteKeyValue(ctx, results+job) })
	refused("put items into the queue", func(ctx context.Context) error {
		_, err := q.js.Publish(ctx, subjects+".x."+job, nil)
		return err
	})
	refused("listen to the batch", func(context.Context) error {
		denied := make(chan error, 1)
		q.nc.SetErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			select {
			case denied <- err:
			default:
			}
		})
		if _, err := q.nc.SubscribeSync(string(Coordinator) + ".>"); err != nil {
			return err
		}
		select {
		case err := <-denied:
			return err
		case <-time.After(time.Second):
			return nil
		}
	})
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
