// Command goclient is the Go client of RocketMQ as a peer of the suite.
//
// Every call is one short process: it prints one line of key=value pairs on
// standard output and exits 0 when it could do what it was told.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/admin"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

// orderKeys is how many ordered streams an ordered send is split into.
const orderKeys = 8

type options struct {
	servers []string
	topic   string
	group   string
	prefix  string
	broker  string
	count   int
	limit   time.Duration
	ordered bool
}

func main() {
	rlog.SetLogLevel("error")
	if len(os.Args) < 2 {
		fail(fmt.Errorf("usage: goclient send|consume|create|list|delete [flags]"))
	}
	command, o := os.Args[1], options{}
	flags := flag.NewFlagSet(command, flag.ExitOnError)
	servers := flags.String("n", "", "name servers, separated by ';'")
	flags.StringVar(&o.topic, "t", "", "topic")
	flags.StringVar(&o.group, "g", "", "group")
	flags.StringVar(&o.prefix, "prefix", "m", "what the bodies begin with")
	flags.StringVar(&o.broker, "b", "", "address of a broker")
	flags.IntVar(&o.count, "count", 1000, "number of messages")
	flags.DurationVar(&o.limit, "limit", time.Minute, "when to give up")
	flags.BoolVar(&o.ordered, "ordered", false, "in order by key")
	if err := flags.Parse(os.Args[2:]); err != nil {
		fail(err)
	}
	o.servers = strings.Split(*servers, ";")

	run, known := map[string]func(options) error{
		"send": send, "consume": consume, "create": create, "list": list, "delete": remove,
	}[command]
	if !known {
		fail(fmt.Errorf("unknown command %q", command))
	}
	if err := run(o); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "goclient:", err)
	os.Exit(1)
}

// send sends count messages one after another; a failed one is tried again until the time is over.
func send(o options) error {
	settings := []producer.Option{
		producer.WithNsResolver(primitive.NewPassthroughResolver(o.servers)),
		producer.WithGroupName(o.group),
		producer.WithInstanceName(o.group),
		producer.WithRetry(0),
		producer.WithSendMsgTimeout(10 * time.Second),
	}
	if o.ordered {
		settings = append(settings, producer.WithQueueSelector(producer.NewHashQueueSelector()))
	}
	p, err := rocketmq.NewProducer(settings...)
	if err != nil {
		return err
	}
	if err := p.Start(); err != nil {
		return err
	}
	defer p.Shutdown()

	deadline := time.Now().Add(o.limit)
	sent, errors, queues := 0, 0, map[int]bool{}
	var last error
	for sent < o.count && time.Now().Before(deadline) {
		key := strconv.Itoa(sent % orderKeys)
		message := primitive.NewMessage(o.topic, []byte(fmt.Sprintf("%s-%s-%d", o.prefix, key, sent)))
		if o.ordered {
			message.WithShardingKey(key)
		}
		ctx, cancel := context.WithDeadline(context.Background(), deadline)
		result, err := p.SendSync(ctx, message)
		cancel()
		if err == nil && result.Status == primitive.SendOK {
			sent++
			queues[result.MessageQueue.QueueId] = true
			continue
		}
		errors++
		last = err
		time.Sleep(200 * time.Millisecond)
	}
	fmt.Printf("sent=%d errors=%d queues=%d\n", sent, errors, len(queues))
	if sent < o.count {
		return fmt.Errorf("sent %d of %d, last error: %v", sent, o.count, last)
	}
	return nil
}

// consume receives until it has count different messages and says whether each key came in order.
func consume(o options) error {
	c, err := rocketmq.NewPushConsumer(
		consumer.WithNsResolver(primitive.NewPassthroughResolver(o.servers)),
		consumer.WithGroupName(o.group),
		consumer.WithInstance(o.group),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
		consumer.WithConsumerOrder(o.ordered),
	)
	if err != nil {
		return err
	}
	var lock sync.Mutex
	seen, highest, disorder, duplicates := map[string]bool{}, map[string]int{}, 0, 0
	done := make(chan struct{})
	var once sync.Once
	take := func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		lock.Lock()
		defer lock.Unlock()
		for _, message := range messages {
			body := string(message.Body)
			if !strings.HasPrefix(body, o.prefix+"-") {
				continue
			}
			if seen[body] {
				duplicates++
				continue
			}
			seen[body] = true
			parts := strings.Split(body, "-")
			key, number := parts[len(parts)-2], parts[len(parts)-1]
			if n, err := strconv.Atoi(number); err == nil {
				if before, known := highest[key]; known && n < before {
					disorder++
				}
				highest[key] = n
			}
		}
		if len(seen) >= o.count {
			once.Do(func() { close(done) })
		}
		return consumer.ConsumeSuccess, nil
	}
	if err := c.Subscribe(o.topic, consumer.MessageSelector{}, take); err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	defer c.Shutdown()
	select {
	case <-done:
	case <-time.After(o.limit):
	}
	lock.Lock()
	defer lock.Unlock()
	fmt.Printf("distinct=%d duplicates=%d disorder=%d\n", len(seen), duplicates, disorder)
	if len(seen) < o.count {
		return fmt.Errorf("received %d of %d", len(seen), o.count)
	}
	return nil
}

func withAdmin(o options, do func(context.Context, admin.Admin) error) error {
	a, err := admin.NewAdmin(admin.WithResolver(primitive.NewPassthroughResolver(o.servers)))
	if err != nil {
		return err
	}
	defer a.Close()
	ctx, cancel := context.WithTimeout(context.Background(), o.limit)
	defer cancel()
	return do(ctx, a)
}

func create(o options) error {
	return withAdmin(o, func(ctx context.Context, a admin.Admin) error {
		return a.CreateTopic(ctx, admin.WithTopicCreate(o.topic), admin.WithBrokerAddrCreate(o.broker))
	})
}

func list(o options) error {
	return withAdmin(o, func(ctx context.Context, a admin.Admin) error {
		topics, err := a.FetchAllTopicList(ctx)
		if err != nil {
			return err
		}
		sort.Strings(topics.TopicList)
		fmt.Println(strings.Join(topics.TopicList, " "))
		return nil
	})
}

func remove(o options) error {
	return withAdmin(o, func(ctx context.Context, a admin.Admin) error {
		return a.DeleteTopic(ctx, admin.WithTopicDelete(o.topic), admin.WithBrokerAddrDelete(o.broker), admin.WithNameSrvAddr(o.servers))
	})
}
