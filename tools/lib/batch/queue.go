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
	opts := []nats.Option{nats.Name("aton"), nats.MaxReconnects(-1), nats.ReconnectWait(time.Second), nats.PingInterval(pingEvery)}
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

// The names that the queue has on a server. Items are messages of the stream; its subjects are subjects.BUILD.JOB.KEY. A job has a
// bucket of results by key, and its files are in two streams, see [store]. A worker reads no result and no output, so that a server
// need not give it the right to; docs/batch.md has the rights of both sides.
const (
	stream   = "ATON_WORK"
	subjects = "aton.work"
	results  = "ATON_RESULTS_"
)

// A store is a stream of files. A file is in parts, each the last message of its subject: SUBJECTS.JOB.NAME.NUMBER. Object stores of
// NATS would be two streams for each job, whose names no right can tell apart: who reads models there can read outputs.
type store struct{ stream, subjects string }

// The stores: files that go to workers, by hash; and outputs that come from them, by key and hash.
var (
	files   = store{"ATON_FILES", "aton.files"}
	outputs = store{"ATON_OUTPUTS", "aton.outputs"}
)

// partSize is how much of a file is in one message: half of what servers take if they are not told otherwise.
const partSize = 512 << 10

// abandoned is how long the files of a job stay that is never gone on with.
const abandoned = 30 * 24 * time.Hour

// window is how long the server knows the identifiers of messages.
const window = time.Hour

// answerWait is how long the server may take to take or give a message.
var answerWait = 5 * time.Second // less in a test

// pingEvery is how often the server is asked whether it is there. A connection that is silent for three times as long is made anew.
var pingEvery = 20 * time.Second // less in a test

// attempts is how often the server is asked before that is an error.
const attempts = 2

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
	err := q.makeStream(ctx, jetstream.StreamConfig{
		Name: stream, Subjects: []string{subjects + ".*.*.*"}, Retention: jetstream.WorkQueuePolicy, Duplicates: window,
	})
	for _, s := range []store{files, outputs} {
		if err == nil {
			// what a worker may get directly is what it names, and of the outputs nothing
			err = q.makeStream(ctx, jetstream.StreamConfig{Name: s.stream, Subjects: []string{s.subjects + ".>"}, MaxMsgsPerSubject: 1, MaxAge: abandoned, AllowDirect: s == files})
		}
	}
	if err == nil {
		err = exchange(ctx, func(ctx context.Context) error {
			_, err := q.js.CreateOrUpdateConsumer(ctx, stream, jetstream.ConsumerConfig{
				Durable: q.durable(), FilterSubject: subjects + "." + q.build + ".>",
				AckPolicy: jetstream.AckExplicitPolicy, AckWait: silence, MaxDeliver: -1, MaxAckPending: -1,
			})
			return err
		})
	}
	if err != nil {
		return q.named(fmt.Errorf("JetStream: %w", err))
	}
	return nil
}

func (q *Queue) makeStream(ctx context.Context, c jetstream.StreamConfig) error {
	c.Storage = jetstream.FileStorage
	return exchange(ctx, func(ctx context.Context) error {
		_, err := q.js.CreateOrUpdateStream(ctx, c)
		return err
	})
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
	err = exchange(ctx, func(ctx context.Context) error {
		_, err := j.results.Put(ctx, probe, nil) // a server that is full answers, and takes nothing
		return err
	})
	if errors.Is(err, jetstream.ErrNoStreamResponse) { // its bucket is lost, with results that are made again then
		_, err = q.makeJob(ctx, j.id)
	}
	return q.named(err), false
}

// probe is a key of the bucket of results that is nobody's.
const probe = "probe"

// job is what the server has of a job besides its items and files, as the coordinator sees it.
type job struct {
	id      string
	results jetstream.KeyValue
	stream  jetstream.Stream // of the results
}

// makeJob makes the bucket of a job, or finds it.
func (q *Queue) makeJob(ctx context.Context, id string) (*job, error) {
	j := &job{id: id}
	err := exchange(ctx, func(ctx context.Context) (err error) {
		if j.results, err = q.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: results + id, Storage: jetstream.FileStorage}); err == nil {
			j.stream, err = q.js.Stream(ctx, "KV_"+results+id)
		}
		return err
	})
	if err != nil {
		return nil, q.named(fmt.Errorf("the bucket of results: %w", err))
	}
	return j, nil
}

// forget removes the result of a key, so that another one can be stored.
func (j *job) forget(ctx context.Context, key string) error {
	err := exchange(ctx, func(ctx context.Context) error {
		return j.stream.Purge(ctx, jetstream.WithPurgeSubject(resultSubject(j.id, key)))
	})
	if errors.Is(err, jetstream.ErrStreamNotFound) { // the bucket is lost, with all results
		return nil
	}
	return err
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

// alive is the beginning of keys of the bucket of results that are no results: a worker writes there that it is at work on an item. The
// server is told that too, but tells the coordinator nothing of it.
const alive = "alive-"

// beat tells server and coordinator that a worker is at work on an item. If it does not arrive, the next one may.
func (q *Queue) beat(m jetstream.Msg, it *Item) {
	_ = m.InProgress()
	_ = q.nc.Publish(resultSubject(it.Job, alive+it.Key), nil)
}

// errOver says that nobody waits for results of a job any more.
var errOver = errors.New("the job is over")

var hexID = regexp.MustCompile(`^[0-9a-f]{32}$`)

// stored says whether an item has a result, without reading it. The error is errOver once the job is over.
func (q *Queue) stored(ctx context.Context, it *Item) (bool, error) {
	if !hexID.MatchString(it.Job) {
		return false, errOver
	}
	found, err := q.keys(ctx, "KV_"+results+it.Job, resultSubject(it.Job, it.Key))
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return false, errOver
	}
	return len(found) > 0, err
}

// keys are the last parts of the subjects of a stream that are as a filter.
func (q *Queue) keys(ctx context.Context, stream, filter string) (found map[string]bool, err error) {
	err = exchange(ctx, func(ctx context.Context) error {
		s, err := q.js.Stream(ctx, stream)
		if err != nil {
			return err
		}
		info, err := s.Info(ctx, jetstream.WithSubjectFilter(filter))
		if err != nil {
			return err
		}
		found = map[string]bool{}
		for subject := range info.State.Subjects {
			found[subject[strings.LastIndexByte(subject, '.')+1:]] = true
		}
		return nil
	})
	return found, err
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

// waiting are the keys of the items of a job that are in the queue, or at a worker.
func (q *Queue) waiting(ctx context.Context, id string) (map[string]bool, error) {
	return q.keys(ctx, stream, q.subject(id, "*"))
}

// subject is that of an item.
func (q *Queue) subject(job, key string) string {
	return subjects + "." + q.build + "." + job + "." + key
}

// idle says whether workers ask for items while the queue has none to give: each is at a worker, or given back to come later.
func (q *Queue) idle(ctx context.Context) (yes bool, err error) {
	err = exchange(ctx, func(ctx context.Context) error {
		c, err := q.js.Consumer(ctx, stream, q.durable()) // with what is so now
		if err == nil {
			info := c.CachedInfo()
			yes = info.NumWaiting > 0 && info.NumPending == 0
		}
		return err
	})
	return yes, err
}

// endJob removes a job from the server: its results and files, and what is left of its items, those that were done twice.
func (q *Queue) endJob(ctx context.Context, id string) error {
	err := errors.Join(q.drop(ctx, stream, q.subject(id, "*")), q.drop(ctx, files.stream, files.subject(id)+".>"), q.drop(ctx, outputs.stream, outputs.subject(id)+".>"))
	return q.named(errors.Join(err, exchange(ctx, func(ctx context.Context) error {
		if err := q.js.DeleteKeyValue(ctx, results+id); !errors.Is(err, jetstream.ErrBucketNotFound) && !errors.Is(err, jetstream.ErrStreamNotFound) { // the answer to the first try may be lost
			return err
		}
		return nil
	})))
}

// drop removes the messages of a subject from a stream.
func (q *Queue) drop(ctx context.Context, stream, subject string) error {
	return exchange(ctx, func(ctx context.Context) error {
		s, err := q.js.Stream(ctx, stream)
		if err != nil {
			return err
		}
		return s.Purge(ctx, jetstream.WithPurgeSubject(subject))
	})
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
			f, err := q.js.PublishMsgAsync(&nats.Msg{Subject: q.subject(it.Job, it.Key), Data: text}, jetstream.WithMsgID(id))
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

// subject is that of all parts of a file, or of all files of a job.
func (s store) subject(job string, name ...string) string {
	return strings.Join(append([]string{s.subjects, job}, name...), ".")
}

// put puts a file into a store.
func (q *Queue) put(ctx context.Context, s store, path, job string, name ...string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	part := make([]byte, q.partSize())
	for n := 0; ; n++ {
		size, err := io.ReadFull(f, part)
		if size > 0 {
			m := &nats.Msg{Subject: fmt.Sprint(s.subject(job, name...), ".", n), Data: part[:size]}
			if err := exchange(ctx, func(ctx context.Context) error { _, err := q.js.PublishMsg(ctx, m); return err }); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (q *Queue) partSize() int64 { return max(1, min(partSize, q.nc.MaxPayload()/2)) }

// has says whether a store has all parts of a file, which is not read for it.
func (q *Queue) has(ctx context.Context, s store, size int64, job string, name ...string) (bool, error) {
	found, err := q.keys(ctx, s.stream, s.subject(job, name...)+".*")
	part := q.partSize()
	return int64(len(found)) == (size+part-1)/part, err
}

// errLost says that a file is not in its store, or another one.
var errLost = errors.New("the file is not in the queue")

// get writes a file of a store, which is as long as it should be.
func (q *Queue) get(ctx context.Context, s store, to io.Writer, size int64, job string, name ...string) error {
	for n := 0; size > 0; n++ {
		var part []byte
		err := exchange(ctx, func(ctx context.Context) error {
			str, err := q.js.Stream(ctx, s.stream)
			if err != nil {
				return err
			}
			m, err := str.GetLastMsgForSubject(ctx, fmt.Sprint(s.subject(job, name...), ".", n))
			if err == nil {
				part = m.Data
			}
			return err
		})
		switch size -= int64(len(part)); {
		case errors.Is(err, jetstream.ErrMsgNotFound), err == nil && (len(part) == 0 || size < 0):
			return errLost
		case err != nil:
			return err
		}
		if _, err := to.Write(part); err != nil {
			return err
		}
	}
	return nil
}
