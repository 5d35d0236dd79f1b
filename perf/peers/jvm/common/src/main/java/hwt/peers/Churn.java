package hwt.peers;

import java.util.ArrayList;
import java.util.List;

/** Each thread keeps a ring of pending timeouts: cancels the oldest, schedules a new one. */
final class Churn {
    private static final long DELAY_MICROS = 600_000_000;

    private Churn() {
    }

    static Figures measure(Peer peer, Options options) throws InterruptedException {
        try (PeerTimer timer = peer.start(options.tickMs())) {
            Counters counters = new Counters(0);
            List<Ring> rings = new ArrayList<>();
            for (int t = 0; t < options.threads(); t++) {
                rings.add(new Ring(timer, counters, Ids.base(t), options.pending(), options.share(options.count(), t)));
            }
            Crew crew = new Crew(rings);
            Fence.await(timer, options.tickMs());

            Stopwatch watch = new Stopwatch();
            crew.work();
            watch.stop(options.tickMs());

            crew.drain();
            Fence.await(timer, options.tickMs());
            long scheduled = (long) options.threads() * options.pending() + options.count();
            List<Canceller> cancellers = rings.stream().map(ring -> ring.canceller).toList();
            return watch.figures(options.count()).add(Canceller.figures(scheduled, counters, cancellers));
        }
    }

    private static final class Ring implements Crew.Member {
        private final PeerTimer timer;
        private final Counters counters;
        private final long idBase;
        private final int pairs;
        private final Canceller canceller;
        private final Object[] handles;
        private int oldest;
        private long lastId;

        Ring(PeerTimer timer, Counters counters, long idBase, int pending, int pairs) {
            this.timer = timer;
            this.counters = counters;
            this.idBase = idBase;
            this.pairs = pairs;
            canceller = new Canceller(timer);
            handles = new Object[pending];
        }

        @Override
        public void fill() {
            for (int i = 0; i < handles.length; i++) {
                handles[i] = scheduleNext();
            }
        }

        @Override
        public void work() {
            for (int i = 0; i < pairs; i++) {
                cancelOldest();
                handles[oldest] = scheduleNext();
                oldest = oldest + 1 == handles.length ? 0 : oldest + 1;
            }
        }

        @Override
        public void drain() {
            for (int i = 0; i < handles.length; i++) {
                canceller.cancel(handles[oldest], idBase + lastId - handles.length + 1 + i);
                oldest = oldest + 1 == handles.length ? 0 : oldest + 1;
            }
        }

        private Object scheduleNext() {
            return timer.schedule(DELAY_MICROS, idBase + ++lastId, counters);
        }

        private void cancelOldest() {
            canceller.cancel(handles[oldest], idBase + lastId - handles.length + 1);
        }
    }
}
