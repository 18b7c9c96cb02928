import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;

import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/**
 * The Java clients and mqadmin of one line, driven over standard input: a line is a command with its words separated
 * by tabs, the answer is text closed by a line "@@END ok|error MILLIS". One JVM for all commands of a line makes an
 * mqadmin command cost milliseconds instead of seconds.
 *
 * Only classes that have the same name in 4.9 and 5.x are used: the file is compiled against each line.
 */
public final class Driver {
    private static final int ORDER_KEYS = 8;
    private static final int SEND_TIMEOUT_MILLIS = 10_000;

    private static final PrintStream ANSWERS = new PrintStream(new FileOutputStream(FileDescriptor.out), true);
    private static Flow flow;
    private static Collector collector;

    public static void main(String[] args) throws Exception {
        System.setOut(System.err); // what the clients print on their own must not get between the answers
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            long begin = System.currentTimeMillis();
            String state = "ok";
            try {
                ANSWERS.println(run(line.split("\t")));
            } catch (Throwable thrown) {
                state = "error";
                thrown.printStackTrace(ANSWERS);
            }
            ANSWERS.println("@@END " + state + " " + (System.currentTimeMillis() - begin));
        }
        Runtime.getRuntime().halt(0);
    }

    private static String run(String[] words) throws Exception {
        switch (words[0]) {
            case "ping":
                return "pong";
            case "admin":
                return admin(Arrays.copyOfRange(words, 1, words.length));
            case "send": // servers topic count prefix seconds ordered
                return send(words[1], words[2], number(words[3]), words[4], number(words[5]), "true".equals(words[6]));
            case "consume": // servers topic group prefix count seconds ordered
                return consume(words[1], words[2], words[3], words[4], number(words[5]), number(words[6]),
                    "true".equals(words[7]));
            case "flow": // servers topic prefix milliseconds-between
                flow = new Flow(words[1], words[2], words[3], number(words[4]));
                return "flowing";
            case "flowing":
                return flow.state();
            case "flowstop":
                return flow.stop();
            case "collect": // servers topic group prefix
                collector = new Collector(words[1], words[2], words[3], words[4], false);
                return "collecting";
            case "collected": // seconds: compares with what the flow had acknowledged
                return collected(number(words[1]));
            default:
                throw new IllegalArgumentException("unknown command " + words[0]);
        }
    }

    private static int number(String word) {
        return Integer.parseInt(word);
    }

    private static String admin(String[] args) {
        PrintStream out = System.out;
        PrintStream err = System.err;
        ByteArrayOutputStream text = new ByteArrayOutputStream();
        PrintStream both = new PrintStream(text, true);
        System.setOut(both);
        System.setErr(both);
        try {
            MQAdminStartup.main0(args, null);
        } finally {
            System.setOut(out);
            System.setErr(err);
        }
        both.flush();
        return text.toString();
    }

    private static DefaultMQProducer producer(String servers) throws Exception {
        String name = "p" + UUID.randomUUID().toString().replace("-", "");
        DefaultMQProducer producer = new DefaultMQProducer(name);
        producer.setInstanceName(name);
        producer.setNamesrvAddr(servers);
        producer.setPollNameServerInterval(1000);
        producer.setSendMsgTimeout(SEND_TIMEOUT_MILLIS);
        producer.start();
        return producer;
    }

    private static String send(String servers, String topic, int count, String prefix, int seconds, boolean ordered)
        throws Exception {
        long deadline = System.currentTimeMillis() + seconds * 1000L;
        Map<String, Integer> queues = new TreeMap<>();
        int sent = 0;
        int errors = 0;
        String last = "";
        DefaultMQProducer producer = producer(servers);
        try {
            while (sent < count && System.currentTimeMillis() < deadline) {
                int key = sent % ORDER_KEYS;
                Message message = new Message(topic, (prefix + "-" + key + "-" + sent).getBytes(StandardCharsets.UTF_8));
                try {
                    SendResult result = ordered
                        ? producer.send(message, (all, to, arg) -> all.get(key % all.size()), null)
                        : producer.send(message);
                    if (result.getSendStatus() != SendStatus.SEND_OK) {
                        throw new IllegalStateException(result.toString());
                    }
                    queues.merge(result.getMessageQueue().getBrokerName() + ":" + result.getMessageQueue().getQueueId(),
                        1, Integer::sum);
                    sent++;
                } catch (Exception refused) {
                    errors++;
                    last = refused.toString().replace('\n', ' ');
                    Thread.sleep(200);
                }
            }
        } finally {
            producer.shutdown();
        }
        StringBuilder answer = new StringBuilder("sent=" + sent + " errors=" + errors + " queues=");
        queues.forEach((queue, many) -> answer.append(queue).append('=').append(many).append(','));
        return answer + (last.isEmpty() ? "" : "\nlast error: " + last);
    }

    private static String consume(String servers, String topic, String group, String prefix, int count, int seconds,
        boolean ordered) throws Exception {
        Collector taken = new Collector(servers, topic, group, prefix, ordered);
        long deadline = System.currentTimeMillis() + seconds * 1000L;
        while (taken.bodies.size() < count && System.currentTimeMillis() < deadline) {
            Thread.sleep(20);
        }
        if (taken.bodies.size() >= count) {
            taken.persist(); // one-way, and once more at the shutdown: one that is lost does not matter
            Thread.sleep(200); // one that comes twice comes soon
        }
        taken.shutdown();
        return taken.state();
    }

    private static String collected(int seconds) throws Exception {
        long deadline = System.currentTimeMillis() + seconds * 1000L;
        Set<String> missing;
        do {
            Thread.sleep(50);
            missing = new HashSet<>(flow.acknowledged);
            missing.removeAll(collector.bodies);
        } while (!missing.isEmpty() && System.currentTimeMillis() < deadline);
        collector.shutdown();
        return "missing=" + missing.size() + " " + collector.state();
    }

    /** Sends without a pause until it is stopped and keeps what the broker acknowledged. */
    private static final class Flow implements Runnable {
        final Set<String> acknowledged = ConcurrentHashMap.newKeySet();
        private final DefaultMQProducer producer;
        private final String topic;
        private final String prefix;
        private final int pause;
        private final Thread thread = new Thread(this, "flow");
        private volatile boolean ending;
        private volatile int errors;
        private volatile long longestGap;
        private volatile String last = "";

        Flow(String servers, String topic, String prefix, int pause) throws Exception {
            this.producer = producer(servers);
            this.topic = topic;
            this.prefix = prefix;
            this.pause = pause;
            thread.setDaemon(true);
            thread.start();
        }

        @Override
        public void run() {
            long before = System.currentTimeMillis();
            for (int i = 0; !ending; i++) {
                String body = prefix + "-" + i % ORDER_KEYS + "-" + i;
                try {
                    Thread.sleep(pause);
                    SendResult result = producer.send(new Message(topic, body.getBytes(StandardCharsets.UTF_8)), 3000);
                    if (result.getSendStatus() == SendStatus.SEND_OK) {
                        acknowledged.add(body);
                        long now = System.currentTimeMillis();
                        longestGap = Math.max(longestGap, now - before);
                        before = now;
                    }
                } catch (Exception refused) {
                    errors++;
                    last = refused.toString().replace('\n', ' ');
                }
            }
        }

        String state() {
            return "acknowledged=" + acknowledged.size() + " errors=" + errors + " gap=" + longestGap
                + (last.isEmpty() ? "" : "\nlast error: " + last);
        }

        String stop() throws Exception {
            ending = true;
            thread.join(20_000);
            producer.shutdown();
            return state();
        }
    }

    /** A push consumer that keeps the bodies it got and counts what came twice or out of order. */
    private static final class Collector {
        final Set<String> bodies = ConcurrentHashMap.newKeySet();
        private final Map<String, Integer> highest = new HashMap<>();
        private final DefaultMQPushConsumer consumer;
        private final String prefix;
        private int duplicates;
        private int disorder;

        Collector(String servers, String topic, String group, String prefix, boolean ordered) throws Exception {
            this.prefix = prefix;
            consumer = new DefaultMQPushConsumer(group);
            consumer.setInstanceName("c" + UUID.randomUUID().toString().replace("-", ""));
            consumer.setNamesrvAddr(servers);
            consumer.setPollNameServerInterval(1000);
            consumer.setHeartbeatBrokerInterval(3000); // a consumer learns of an acting slave with its heartbeat
            consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
            consumer.setConsumeThreadMin(2);
            consumer.setConsumeThreadMax(4);
            consumer.subscribe(topic, "*");
            if (ordered) {
                consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
                    take(messages);
                    return ConsumeOrderlyStatus.SUCCESS;
                });
            } else {
                consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                    take(messages);
                    return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
                });
            }
            consumer.start();
        }

        private synchronized void take(List<MessageExt> messages) {
            for (MessageExt message : messages) {
                String body = new String(message.getBody(), StandardCharsets.UTF_8);
                if (!body.startsWith(prefix + "-")) {
                    continue;
                }
                if (!bodies.add(body)) {
                    duplicates++;
                    continue;
                }
                String[] parts = body.split("-");
                int number = Integer.parseInt(parts[parts.length - 1]);
                Integer before = highest.put(parts[parts.length - 2], number);
                if (before != null && number < before) {
                    disorder++;
                }
            }
        }

        synchronized String state() {
            return "distinct=" + bodies.size() + " duplicates=" + duplicates + " disorder=" + disorder;
        }

        /** Sends the brokers how far the group has got. */
        void persist() {
            consumer.getDefaultMQPushConsumerImpl().persistConsumerOffset();
        }

        void shutdown() {
            consumer.shutdown();
        }
    }

    private Driver() {
    }
}
