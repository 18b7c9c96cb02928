import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collections;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

import org.apache.rocketmq.client.apis.ClientConfiguration;
import org.apache.rocketmq.client.apis.ClientServiceProvider;
import org.apache.rocketmq.client.apis.consumer.ConsumeResult;
import org.apache.rocketmq.client.apis.consumer.FilterExpression;
import org.apache.rocketmq.client.apis.producer.Producer;

/** The gRPC client through the proxy: arguments ENDPOINT TOPIC GROUP COUNT SECONDS; prints "sent=N distinct=N". */
public final class GrpcDriver {
    public static void main(String[] args) throws Exception {
        String topic = args[1];
        int count = Integer.parseInt(args[3]);
        long deadline = System.currentTimeMillis() + Long.parseLong(args[4]) * 1000L;
        ClientServiceProvider provider = ClientServiceProvider.loadService();
        ClientConfiguration settings = ClientConfiguration.newBuilder().setEndpoints(args[0]).enableSsl(false)
            .setRequestTimeout(Duration.ofSeconds(10)).build();
        Set<String> bodies = ConcurrentHashMap.newKeySet();
        int sent = 0;
        String last = "";
        try {
            Producer producer = provider.newProducerBuilder().setClientConfiguration(settings).setTopics(topic).build();
            while (sent < count && System.currentTimeMillis() < deadline) {
                byte[] body = ("g-" + sent).getBytes(StandardCharsets.UTF_8);
                try {
                    producer.send(provider.newMessageBuilder().setTopic(topic).setBody(body).build());
                    sent++;
                } catch (Exception refused) {
                    last = refused.toString();
                    Thread.sleep(200);
                }
            }
            System.out.println("sent=" + sent);
            // Neither is closed: the consumer would wait for its long polls, 20 s.
            provider.newPushConsumerBuilder().setClientConfiguration(settings)
                .setConsumerGroup(args[2])
                .setSubscriptionExpressions(Collections.singletonMap(topic, FilterExpression.SUB_ALL))
                .setMessageListener(message -> {
                    byte[] body = new byte[message.getBody().remaining()];
                    message.getBody().get(body);
                    bodies.add(new String(body, StandardCharsets.UTF_8));
                    return ConsumeResult.SUCCESS;
                }).build();
            while (bodies.size() < count && System.currentTimeMillis() < deadline) {
                Thread.sleep(20);
            }
        } catch (Throwable thrown) {
            last = thrown.toString();
        }
        System.out.println("sent=" + sent + " distinct=" + bodies.size() + " last=" + last.replace('\n', ' '));
        Runtime.getRuntime().halt(0);
    }

    private GrpcDriver() {
    }
}
