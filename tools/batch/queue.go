package batch

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
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

// The names that the queue has on a server. Items are messages of the stream; its subjects are subjects.BUILD.JOB. A job has two
// buckets: results by key, and files by hash (those of models that are uploaded) and by key and hash (those that were written).
const (
	stream   = "ATON_WORK"
	subjects = "aton.work"
	results  = "ATON_RESULTS_"
	files    = "ATON_FILES_"
)

// window is how long the server knows the identifiers of messages.
const window = time.Hour

// Queue is a connection to a server with JetStream.
type Queue struct {
	nc *nats.Conn
	js jetstream.JetStream
	// build is the version of aton as a word of a subject: a worker takes the items of its own version.
	build string
	// silence is how long a worker may say nothing.
	silence time.Duration
}

// Dial connects to a server elsewhere.
func Dial(ctx context.Context, a Access, build string, silence time.Duration) (*Queue, error) {
	opts, err := a.options()
	if err != nil {
		return nil, err
	}
	return dial(ctx, a.URLs, build, silence, opts...)
}

func dial(ctx context.Context, urls, build string, silence time.Duration, opts ...nats.Option) (*Queue, error) {
	where := "the queue"
	if urls != "" {
		where = redactedURLs(urls)
	}
	nc, err := nats.Connect(urls, opts...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	q := &Queue{nc: nc, build: digest(build)[:12], silence: silence}
	if q.js, err = jetstream.New(nc); err == nil {
		_, err = q.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
			Name: stream, Subjects: []string{subjects + ".*.*"},
			Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage, Duplicates: window,
		})
	}
	if err != nil {
		nc.Close()
		return nil, fmt.Errorf("%s: JetStream: %w", where, err)
	}
	return q, nil
}

// redactedURLs are the URLs of servers without passwords.
func redactedURLs(urls string) string {
	list := strings.Split(urls, ",")
	for i, s := range list {
		u, err := url.Parse(strings.TrimSpace(s))
		if err != nil || u.Host == "" {
			list[i] = "the queue"
			continue
		}
		u.User = nil // a token stands where a name does
		list[i] = u.String()
	}
	return strings.Join(list, ",")
}

// Close ends the connection.
func (q *Queue) Close() { q.nc.Close() }

// consumer is where the workers of this version take items from.
func (q *Queue) consumer(ctx context.Context) (jetstream.Consumer, error) {
	return q.js.CreateOrUpdateConsumer(ctx, stream, jetstream.ConsumerConfig{
		Durable: "aton-" + q.build, FilterSubject: subjects + "." + q.build + ".*",
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: q.silence, MaxDeliver: -1, MaxAckPending: -1,
	})
}

// job is what the server has of a job besides its items.
type job struct {
	id      string
	results jetstream.KeyValue
	files   jetstream.ObjectStore
}

// makeJob makes the buckets of a job, or finds them.
func (q *Queue) makeJob(ctx context.Context, id string) (*job, error) {
	kv, err := q.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: results + id, Storage: jetstream.FileStorage})
	if err != nil {
		return nil, fmt.Errorf("the bucket of results: %w", err)
	}
	store, err := q.js.CreateOrUpdateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: files + id, Storage: jetstream.FileStorage})
	if err != nil {
		return nil, fmt.Errorf("the object store: %w", err)
	}
	return &job{id, kv, store}, nil
}

// findJob finds the buckets of a job; the error is jetstream.ErrBucketNotFound once the job is over.
func (q *Queue) findJob(ctx context.Context, id string) (*job, error) {
	if len(id) != 32 || strings.Trim(id, "0123456789abcdef") != "" {
		return nil, jetstream.ErrBucketNotFound
	}
	kv, err := q.js.KeyValue(ctx, results+id)
	if err != nil {
		return nil, err
	}
	store, err := q.js.ObjectStore(ctx, files+id)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		err = jetstream.ErrBucketNotFound
	}
	return &job{id, kv, store}, err
}

// endJob removes a job from the server: its buckets, and what is left of its items, those that were done twice.
func (q *Queue) endJob(ctx context.Context, id string) error {
	s, err := q.js.Stream(ctx, stream)
	if err == nil {
		err = s.Purge(ctx, jetstream.WithPurgeSubject(subjects+"."+q.build+"."+id))
	}
	return errors.Join(err, q.js.DeleteKeyValue(ctx, results+id), q.js.DeleteObjectStore(ctx, files+id))
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
				id += fmt.Sprint(time.Now().UnixNano())
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

// upload puts a file into the object store under a name, if it is not there yet.
func (j *job) upload(ctx context.Context, name, path string) error {
	if info, err := j.files.GetInfo(ctx, name); err == nil {
		if f, err := os.Stat(path); err == nil && uint64(f.Size()) == info.Size {
			return nil
		}
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = j.files.Put(ctx, jetstream.ObjectMeta{Name: name}, f)
	return err
}

// download writes the object of a name.
func (j *job) download(ctx context.Context, name string, to io.Writer) error {
	o, err := j.files.Get(ctx, name)
	if err != nil {
		return err
	}
	defer o.Close()
	_, err = io.Copy(to, o)
	return err
}

// object is the name of a file of a result in the object store.
func object(key, hash string) string { return key + "-" + hash }
