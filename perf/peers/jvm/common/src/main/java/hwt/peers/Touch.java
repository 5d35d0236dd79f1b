package hwt.peers;

import java.util.ArrayList;
import java.util.List;

/** Each thread puts off one of its pending timeouts at random, again and again. */
final class Touch {
    private static final long DELAY_MICROS = 600_000_000;

    private Touch() {
    }

    static Figures measure(Peer peer, Options options) throws InterruptedException {
        try (PeerTimer timer = peer.start(options.tickMs())) {
            Counters counters = new Counters(0);
            List<Toucher> touchers = new ArrayList<>();
            for (int t = 0; t < options.threads(); t++) {
                touchers.add(new Toucher(timer, counters, options, t));
            }
            Crew crew = new Crew(touchers);
            Fence.await(timer, options.tickMs());

            Stopwatch watch = new Stopwatch();
            crew.work();
            watch.stop(options.tickMs());

            crew.drain();
            Fence.await(timer, options.tickMs());
            List<Canceller> cancellers = touchers.stream().map(toucher -> toucher.canceller).toList();
            return watch.figures(options.count()).add(Canceller.figures(options.pending(), counters, cancellers));
        }
    }

    private static final class Toucher implements Crew.Member {
        private final PeerTimer timer;
        private final Counters counters;
        private final long idBase;
        private final int touches;
        private final SplitMix64 random;
        private final Canceller canceller;
        private final Object[] handles;

        Toucher(PeerTimer timer, Counters counters, Options options, int t) {
            this.timer = timer;
            this.counters = counters;
            idBase = Ids.base(t);
            touches = options.share(options.count(), t);
            random = new SplitMix64(options.seed() + t);
            canceller = new Canceller(timer);
            handles = new Object[options.share(options.pending(), t)];
        }

        @Override
        public void fill() {
            for (int i = 0; i < handles.length; i++) {
                handles[i] = timer.schedule(DELAY_MICROS, idBase + 1 + i, counters);
            }
        }

        @Override
        public void work() {
            for (int n = 0; n < touches; n++) {
                int i = (int) random.below(handles.length);
                handles[i] = timer.touch(handles[i], DELAY_MICROS, idBase + 1 + i, counters);
            }
        }

        @Override
        public void drain() {
            for (int i = 0; i < handles.length; i++) {
                canceller.cancel(handles[i], idBase + 1 + i);
            }
        }
    }
}
