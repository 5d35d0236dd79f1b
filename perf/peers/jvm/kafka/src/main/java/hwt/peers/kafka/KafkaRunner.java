package hwt.peers.kafka;

import hwt.peers.Peer;
import hwt.peers.PeerTimer;
import hwt.peers.Runner;
import java.io.IOException;
import java.util.Set;

/** Kafka's SystemTimer. */
public final class KafkaRunner implements Peer {
    public static void main(String[] args) throws InterruptedException, IOException {
        Runner.main(new KafkaRunner(), args);
    }

    @Override
    public String name() {
        return "kafka";
    }

    @Override
    public Set<String> threadNames() {
        return KafkaTimer.THREADS;
    }

    @Override
    public PeerTimer start(int tickMs) {
        return new KafkaTimer(tickMs);
    }

    @Override
    public String note() {
        return "delays in whole milliseconds";
    }
}
