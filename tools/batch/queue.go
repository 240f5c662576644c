package batch

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Access says where a server of NATS is, and with what it lets us in. Files, not values: a command line can be read by others.
type Access struct {
	// URLs are those of the servers of a cluster, with commas.
	URLs string
	// Creds has a JWT and its key, NKey a seed, Token a token, each in a file.
	Creds, NKey, Token string
	// CA, Cert and Key are for TLS.
	CA, Cert, Key string
}

func (a Access) options() ([]nats.Option, error) {
	opts := []nats.Option{nats.Name("aton"), nats.MaxReconnects(-1), nats.ReconnectWait(time.Second)}
	if a.Creds != "" {
		opts = append(opts, nats.UserCredentials(a.Creds))
	}
	if a.NKey != "" {
		o, err := nats.NkeyOptionFromSeed(a.NKey)
		if err != nil {
			return nil, fmt.Errorf("--queue-nkey: %w", err)
		}
		opts = append(opts, o)
	}
	if a.Token != "" {
		text, err := os.ReadFile(a.Token)
		if err != nil {
			return nil, err
		}
		opts = append(opts, nats.Token(strings.TrimSpace(string(text))))
	}
	if a.CA != "" {
		opts = append(opts, nats.RootCAs(a.CA))
	}
	if (a.Cert == "") != (a.Key == "") {
		return nil, errors.New("--queue-cert and --queue-key go together")
	}
	if a.Cert != "" {
		if _, err := tls.LoadX509KeyPair(a.Cert, a.Key); err != nil {
			return nil, fmt.Errorf("--queue-cert: %w", err)
		}
		opts = append(opts, nats.ClientCert(a.Cert, a.Key))
	}
	return opts, nil
}

// The names that the queue has on a server. Items are messages of the stream; its subjects are subjects.BUILD.JOB. A job has three
// buckets: results by key; files by hash, those of models that are uploaded; and outputs by key and hash. A worker reads no
// result, so that a server need not give it the right to; docs/batch.md has the rights of both sides.
const (
	stream   = "ATON_WORK"
	subjects = "aton.work"
	results  = "ATON_RESULTS_"
	files    = "ATON_FILES_"
	outputs  = "ATON_OUTPUTS_"
)

// window is how long the server knows the identifiers of messages.
const window = time.Hour

// answerWait is how long the server may take to take or give a message.
var answerWait = 10 * time.Second // less in a test

// attempts is how often the server is asked before a worker gives its item back.
const attempts = 3

// exchange asks the server something. What is asked, and what is answered, may be lost on the way: where no answer comes in time, it is asked
// again, so that doing it twice has to be the same as doing it once. A deadline of the context is none for the answer, as it may be far away.
func exchange(ctx context.Context, ask func(context.Context) error) error {
	for n := 1; ; n++ {
		brief, cancel := context.WithTimeout(ctx, answerWait)
		err := ask(brief)
		late := brief.Err() != nil || errors.Is(err, nats.ErrTimeout)
		cancel()
		if err == nil || !late || ctx.Err() != nil || n == attempts {
			return err
		}
	}
}

// Queue is a connection to a server with JetStream.
type Queue struct {
	nc *nats.Conn
	js jetstream.JetStream
	// where are the URLs of the server, as a message may show them.
	where string
	// build is the version of aton as a word of a subject: a worker takes the items of its own version.
	build string
	// inside is the server where it is one of this process.
	inside *Server
}

// Role says what a connection is for. Answers of the server to one side are nothing that the other side can listen to, if the server
// gives rights by these subjects.
type Role string

// The roles.
const (
	Coordinator Role = "_INBOX.aton-batch"
	Taker       Role = "_INBOX.aton-worker"
)

// Dial connects to a server elsewhere. The log is told when the connection is lost, and when it is back; it may be nil.
func Dial(a Access, build string, role Role, log func(format string, args ...any)) (*Queue, error) {
	opts, err := a.options()
	if err != nil {
		return nil, err
	}
	return dial(a.URLs, build, role, log, opts...)
}

func dial(urls, build string, role Role, log func(format string, args ...any), opts ...nats.Option) (*Queue, error) {
	where := "the queue"
	if urls != "" {
		where = redactedURLs(urls)
	}
	opts = append(opts, nats.CustomInboxPrefix(string(role)+"."+randomID()))
	if log != nil {
		opts = append(opts,
			nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
				if err != nil { // nil when it is closed
					log("%s: the connection is lost: %v", where, err)
				}
			}),
			nats.ReconnectHandler(func(*nats.Conn) { log("%s: connected again", where) }),
			nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { log("%s: %v", where, err) }))
	}
	nc, err := nats.Connect(urls, opts...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	q := &Queue{nc: nc, where: where, build: digest(build)[:12]}
	if q.js, err = jetstream.New(nc, jetstream.WithPublishAsyncTimeout(answerWait), jetstream.WithDefaultTimeout(answerWait)); err != nil {
		nc.Close()
		return nil, q.named(err)
	}
	return q, nil
}

// named puts the server before an error of it.
func (q *Queue) named(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", q.where, err)
}

// redactedURLs are the URLs of servers without passwords and tokens.
func redactedURLs(urls string) string {
	list := strings.Split(urls, ",")
	for i, s := range list {
		if !strings.Contains(s, "://") {
			s = "nats://" + strings.TrimSpace(s)
		}
		if list[i] = redacted(s); list[i] == unnamed {
			list[i] = "the queue"
		}
	}
	return strings.Join(list, ",")
}

// Close ends the connection.
func (q *Queue) Close() { q.nc.Close() }

// prepare makes the stream, and the consumer that the workers of this version take items from. A worker may say nothing for as long as
// silence.
func (q *Queue) prepare(ctx context.Context, silence time.Duration) error {
	_, err := q.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: stream, Subjects: []string{subjects + ".*.*"},
		Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage, Duplicates: window,
	})
	if err == nil {
		_, err = q.js.CreateOrUpdateConsumer(ctx, stream, jetstream.ConsumerConfig{
			Durable: q.durable(), FilterSubject: subjects + "." + q.build + ".*",
			AckPolicy: jetstream.AckExplicitPolicy, AckWait: silence, MaxDeliver: -1, MaxAckPending: -1,
		})
	}
	if err != nil {
		return q.named(fmt.Errorf("JetStream: %w", err))
	}
	return nil
}

func (q *Queue) durable() string { return "aton-" + q.build }

// consumer is where the workers of this version take items from. There is none (nil) before the first batch.
func (q *Queue) consumer(ctx context.Context) (c jetstream.Consumer, err error) {
	err = exchange(ctx, func(ctx context.Context) (err error) { c, err = q.js.Consumer(ctx, stream, q.durable()); return err })
	if errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	return c, err
}

// check says what is wrong with the server, and whether it can become right by itself.
func (q *Queue) check(ctx context.Context, j *job) (err error, hopeless bool) {
	if q.inside != nil {
		if err := q.inside.failed(); err != nil {
			return err, true
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err = j.results.Put(ctx, probe, nil) // a server that is full answers, and takes nothing
	return q.named(err), false
}

// probe is a key of the bucket of results that is nobody's.
const probe = "probe"

// job is what the server has of a job besides its items, as the coordinator sees it.
type job struct {
	id      string
	results jetstream.KeyValue
	stream  jetstream.Stream // of the results
	files   jetstream.ObjectStore
	outputs jetstream.ObjectStore
}

// makeJob makes the buckets of a job, or finds them.
func (q *Queue) makeJob(ctx context.Context, id string) (*job, error) {
	j := &job{id: id}
	var err error
	if j.results, err = q.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: results + id, Storage: jetstream.FileStorage}); err != nil {
		return nil, q.named(fmt.Errorf("the bucket of results: %w", err))
	}
	if j.stream, err = q.js.Stream(ctx, "KV_"+results+id); err != nil {
		return nil, q.named(fmt.Errorf("the bucket of results: %w", err))
	}
	for name, store := range map[string]*jetstream.ObjectStore{files + id: &j.files, outputs + id: &j.outputs} {
		if *store, err = q.js.CreateOrUpdateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: name, Storage: jetstream.FileStorage}); err != nil {
			return nil, q.named(fmt.Errorf("the object store: %w", err))
		}
	}
	return j, nil
}

// forget removes the result of a key, so that another one can be stored.
func (j *job) forget(ctx context.Context, key string) error {
	return exchange(ctx, func(ctx context.Context) error {
		return j.stream.Purge(ctx, jetstream.WithPurgeSubject(resultSubject(j.id, key)))
	})
}

// watch gives the results that there are, then nil, then those that come, until the context ends.
func (j *job) watch(ctx context.Context) (w jetstream.KeyWatcher, err error) {
	err = exchange(ctx, func(brief context.Context) error {
		// the context of a watch is that of all it gives; one with a deadline would end it
		watching, stop := context.WithCancel(ctx)
		late := context.AfterFunc(brief, stop)
		if w, err = j.results.WatchAll(watching); err == nil && !late() {
			err = brief.Err()
		}
		if err != nil {
			stop()
		}
		return err
	})
	return w, err
}

func resultSubject(job, key string) string { return "$KV." + results + job + "." + key }

// errOver says that nobody waits for results of a job any more.
var errOver = errors.New("the job is over")

var hexID = regexp.MustCompile(`^[0-9a-f]{32}$`)

// stored says whether an item has a result, without reading it. The error is errOver once the job is over.
func (q *Queue) stored(ctx context.Context, it *Item) (bool, error) {
	if !hexID.MatchString(it.Job) {
		return false, errOver
	}
	var info *jetstream.StreamInfo
	err := exchange(ctx, func(ctx context.Context) error {
		s, err := q.js.Stream(ctx, "KV_"+results+it.Job)
		if err == nil {
			info, err = s.Info(ctx, jetstream.WithSubjectFilter(resultSubject(it.Job, it.Key)))
		}
		return err
	})
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return false, errOver
	case err != nil:
		return false, err
	}
	return len(info.State.Subjects) > 0, nil
}

// store keeps the result of an item unless there is one.
func (q *Queue) store(ctx context.Context, it *Item, text []byte) error {
	err := exchange(ctx, func(ctx context.Context) error {
		_, err := q.js.PublishMsg(ctx, &nats.Msg{Subject: resultSubject(it.Job, it.Key), Data: text}, jetstream.WithExpectLastSequencePerSubject(0))
		return err
	})
	var api *jetstream.APIError
	switch {
	case errors.As(err, &api) && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || api.ErrorCode == 10164): // 10164 on streams with replicas
		return nil
	case errors.Is(err, jetstream.ErrNoStreamResponse):
		return errOver
	}
	return err
}

// waiting counts the items of a job that are in the queue, or at a worker.
func (q *Queue) waiting(ctx context.Context, id string) (uint64, error) {
	var info *jetstream.StreamInfo
	err := exchange(ctx, func(ctx context.Context) error {
		s, err := q.js.Stream(ctx, stream)
		if err == nil {
			info, err = s.Info(ctx, jetstream.WithSubjectFilter(subjects+"."+q.build+"."+id))
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	n := uint64(0)
	for _, count := range info.State.Subjects {
		n += count
	}
	return n, nil
}

// endJob removes a job from the server: its buckets, and what is left of its items, those that were done twice.
func (q *Queue) endJob(ctx context.Context, id string) error {
	s, err := q.js.Stream(ctx, stream)
	if err == nil {
		err = s.Purge(ctx, jetstream.WithPurgeSubject(subjects+"."+q.build+"."+id))
	}
	return q.named(errors.Join(err, q.js.DeleteKeyValue(ctx, results+id), q.js.DeleteObjectStore(ctx, files+id), q.js.DeleteObjectStore(ctx, outputs+id)))
}

// atOnce is how many messages are on their way to the server at a time; the library gives up where it is many more.
const atOnce = 256

// publish puts items into the queue. An item whose message the server knows already is not put there again.
func (q *Queue) publish(ctx context.Context, items []*Item, again map[string]bool) error {
	for part := range slices.Chunk(items, atOnce) {
		var futures []jetstream.PubAckFuture
		for _, it := range part {
			text, err := json.Marshal(it)
			if err != nil {
				return err
			}
			id := it.Job + it.Key
			if again[it.Key] { // its message was done, and what came of it is lost
				id += randomID() // not the time: a clock may be put back
			}
			f, err := q.js.PublishMsgAsync(&nats.Msg{Subject: subjects + "." + q.build + "." + it.Job, Data: text}, jetstream.WithMsgID(id))
			if err != nil {
				return fmt.Errorf("%s: %w", it.Name, err)
			}
			futures = append(futures, f)
		}
		for _, f := range futures {
			select {
			case <-f.Ok():
			case err := <-f.Err():
				return fmt.Errorf("the queue takes no items: %w", err)
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}

// upload puts a file into an object store under a name, if it is not there yet.
func upload(ctx context.Context, store jetstream.ObjectStore, name, path string) error {
	if info, err := store.GetInfo(ctx, name); err == nil {
		if f, err := os.Stat(path); err == nil && uint64(f.Size()) == info.Size {
			return nil
		}
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = store.Put(ctx, jetstream.ObjectMeta{Name: name}, f)
	return err
}

// download writes the object of a name.
func download(ctx context.Context, store jetstream.ObjectStore, name string, to io.Writer) error {
	o, err := store.Get(ctx, name)
	if err != nil {
		return err
	}
	defer o.Close()
	_, err = io.Copy(to, o)
	return err
}

// object is the name of a file of a result in the object store.
func object(key, hash string) string { return key + "-" + hash }
