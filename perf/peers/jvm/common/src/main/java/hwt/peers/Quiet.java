package hwt.peers;

import java.io.IOException;

/** What a timer takes while nothing expires: with nothing pending, or with timeouts that are due much later. */
final class Quiet {
    private static final long REST_MS = 500;

    private Quiet() {
    }

    static Figures idle(Peer peer, Options options) throws InterruptedException, IOException {
        try (PeerTimer timer = peer.start(options.tickMs())) {
            return measure(peer, options);
        }
    }

    static Figures far(Peer peer, Options options) throws InterruptedException, IOException {
        try (PeerTimer timer = peer.start(options.tickMs())) {
            Counters counters = new Counters(0);
            SplitMix64 random = new SplitMix64(options.seed());
            for (int id = 1; id <= options.pending(); id++) {
                timer.schedule(1_000 * random.between(600_000, 1_200_000), id, counters);
            }
            Fence.await(timer, options.tickMs());
            return measure(peer, options);
        }
    }

    private static Figures measure(Peer peer, Options options) throws InterruptedException, IOException {
        Thread.sleep(2L * options.tickMs() + REST_MS);
        long wakeups = Wakeups.count(peer.threadNames());
        long cpu = Cpu.nanos();
        long wall = System.nanoTime();
        Thread.sleep(1_000L * options.seconds());
        cpu = Cpu.nanos() - cpu;
        double seconds = (System.nanoTime() - wall) / 1e9;
        wakeups = Wakeups.count(peer.threadNames()) - wakeups;
        return new Figures()
                .number("cpu_ms_per_s", cpu / 1e6 / seconds)
                .number("wakeups_per_s", wakeups / seconds);
    }
}
