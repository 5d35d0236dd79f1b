package hwt.peers;

import java.util.ArrayList;
import java.util.List;

/** Schedules timeouts of 1 to 1000 ms and waits until all have run. */
final class Expire {
    private Expire() {
    }

    static Figures measure(Peer peer, Options options) throws InterruptedException {
        try (PeerTimer timer = peer.start(options.tickMs())) {
            Counters counters = new Counters(options.count());
            List<Crew.Member> producers = new ArrayList<>();
            for (int t = 0; t < options.threads(); t++) {
                producers.add(producer(timer, counters, options, t));
            }
            Crew crew = new Crew(producers);

            Stopwatch watch = new Stopwatch();
            crew.work();
            counters.awaitAll();
            watch.stop(options.tickMs());

            crew.drain();
            return watch.figures(options.count()).add(Canceller.figures(options.count(), counters, List.of()));
        }
    }

    private static Crew.Member producer(PeerTimer timer, Counters counters, Options options, int t) {
        long idBase = Ids.base(t);
        int count = options.share(options.count(), t);
        SplitMix64 random = new SplitMix64(options.seed() + t);
        return () -> {
            for (int i = 1; i <= count; i++) {
                timer.schedule(1_000 * random.between(1, 1_000), idBase + i, counters);
            }
        };
    }
}
