package hwt.peers;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.IntFunction;
import java.util.function.IntUnaryOperator;
import java.util.function.LongSupplier;
import java.util.stream.IntStream;

/** The workloads, on a fresh timer. */
final class Workloads implements AutoCloseable {
    static final List<String> NAMES = List.of("churn", "handoff", "expire", "memory", "idle", "far", "late", "rate", "touch");

    /** The delay of timeouts that are cancelled or postponed before they are due. */
    private static final long LONG_DELAY = TimeUnit.SECONDS.toMicros(600);

    /** The handles of a batch, and the batches that go round between two threads. */
    private static final int BATCH_SIZE = 256;
    private static final int BATCHES = 8;

    private final Peer peer;
    private final Options options;
    private final Peer.Timer timer;
    /** Threads that live for a whole round. */
    private final ExecutorService producers;

    private Workloads(Peer peer, Options options) {
        this.peer = peer;
        this.options = options;
        timer = peer.start().apply(options.tickMs());
        producers = Executors.newCachedThreadPool(run -> new Thread(run, "producer"));
    }

    static Map<String, Object> measure(String workload, Peer peer, Options options) throws Exception {
        try (Workloads on = new Workloads(peer, options)) {
            return switch (workload) {
                case "churn" -> on.rings(t -> options.pending(), Ring::churn, Ring::churn);
                case "handoff" -> on.rings(t -> options.pending(), Ring::handOver, Ring::handOver);
                case "touch" -> on.rings(t -> options.share(options.pending(), t), Ring::churn, Ring::touch);
                case "expire" -> on.expire();
                case "memory" -> on.memory();
                case "idle" -> Process.atRest(peer, options);
                case "far" -> on.far();
                case "late" -> on.late();
                case "rate" -> on.rate();
                default -> throw new IllegalArgumentException(workload);
            };
        }
    }

    @Override
    public void close() {
        producers.shutdown();
        timer.close();
    }

    /** Makes each thread t do its share. */
    private void together(Part part) throws Exception {
        IntFunction<Callable<Object>> partOf = t -> () -> {
            part.run(t);
            return null;
        };
        for (Future<Object> done : producers.invokeAll(IntStream.range(0, options.threads()).mapToObj(partOf).toList())) {
            done.get();
        }
    }

    private interface Part {
        void run(int t) throws Exception;
    }

    /** An operation on a ring, n times. */
    private interface Work {
        void run(Ring ring, int n) throws Exception;
    }

    /**
     * Waits until the timer has taken over all scheduled timeouts. The peers process timeouts and tasks in order. So
     * all earlier timeouts are in the wheel when a later one of two ticks has run. This also publishes the tasks'
     * counters.
     */
    private void fence() throws InterruptedException {
        CountDownLatch passed = new CountDownLatch(1);
        timer.schedule(2_000L * options.tickMs(), 0, id -> passed.countDown());
        passed.await();
    }

    /** The id before the first one of thread {@code t}. */
    private static long firstId(int t) {
        return (long) t << 40;
    }

    private SplittableRandom random(int t) {
        return new SplittableRandom(options.seed() + t);
    }

    /** Counts expired timeouts. Only the thread that runs the peer's tasks writes it. */
    private static final class Fired implements Peer.Task {
        private final long awaited;
        private final CountDownLatch all = new CountDownLatch(1);
        private long count;
        private long sum;

        Fired(long awaited) {
            this.awaited = awaited;
        }

        @Override
        public void run(long id) {
            sum += id;
            if (++count == awaited) {
                all.countDown();
            }
        }
    }

    /** The sums are strings, because some JSON readers do not keep 64 bits. */
    private static Map<String, Object> with(
            Map<String, Object> times, long scheduled, Fired fired, long cancelled, long cancelledSum) {
        times.putAll(Map.of("scheduled", scheduled,
                "fired", fired.count, "fired_sum", Long.toUnsignedString(fired.sum),
                "cancelled", cancelled, "cancelled_sum", Long.toUnsignedString(cancelledSum)));
        return times;
    }

    /** The pending timeouts of one thread. */
    private final class Ring {
        private final Fired fired;
        private final SplittableRandom random;
        private final Object[] handles;
        private final long[] ids;
        private final long firstId;
        private long lastId;
        private int oldest;
        private long cancelled;
        private long cancelledSum;

        Ring(Fired fired, int t, int size) {
            this.fired = fired;
            random = random(t);
            handles = new Object[size];
            ids = new long[size];
            firstId = firstId(t);
            lastId = firstId;
        }

        /** Does nothing while the ring is not full. */
        void cancelOldest() {
            if (handles[oldest] != null && timer.cancel(handles[oldest])) {
                cancelled++;
                cancelledSum += ids[oldest];
            }
        }

        /** Replaces the oldest timeout. */
        void keep(long id, Object handle) {
            ids[oldest] = id;
            handles[oldest] = handle;
            oldest = oldest + 1 == handles.length ? 0 : oldest + 1;
        }

        void drain() {
            for (int i = 0; i < handles.length; i++) {
                cancelOldest();
                keep(0, null);
            }
        }

        /** Cancels the oldest timeout and schedules a new one. */
        void churn(int n) {
            for (int i = 0; i < n; i++) {
                cancelOldest();
                keep(++lastId, timer.schedule(LONG_DELAY, lastId, fired));
            }
        }

        /** Cancels the oldest timeout and keeps one that another thread scheduled. Batches go round between the two. */
        void handOver(int n) throws Exception {
            BlockingQueue<Object[]> full = new ArrayBlockingQueue<>(BATCHES);
            BlockingQueue<Object[]> empty = new ArrayBlockingQueue<>(BATCHES);
            IntStream.range(0, BATCHES).forEach(i -> empty.add(new Object[BATCH_SIZE]));
            long first = lastId + 1;
            Future<Object> scheduling = producers.submit(() -> {
                for (int done = 0; done < n; done += BATCH_SIZE) {
                    Object[] batch = empty.take();
                    for (int i = 0; i < Math.min(BATCH_SIZE, n - done); i++) {
                        batch[i] = timer.schedule(LONG_DELAY, first + done + i, fired);
                    }
                    full.put(batch);
                }
                return null;
            });
            for (int done = 0; done < n; done += BATCH_SIZE) {
                Object[] batch = full.take();
                for (int i = 0; i < Math.min(BATCH_SIZE, n - done); i++) {
                    cancelOldest();
                    keep(++lastId, batch[i]);
                }
                empty.put(batch);
            }
            scheduling.get();
        }

        /** Postpones a timeout at random. */
        void touch(int n) {
            for (int i = 0; i < n; i++) {
                int at = random.nextInt(handles.length);
                handles[at] = timer.putOff(handles[at], LONG_DELAY, ids[at], fired);
            }
        }
    }

    private Map<String, Object> rings(IntUnaryOperator size, Work fill, Work work) throws Exception {
        Fired fired = new Fired(0);
        List<Ring> rings = IntStream.range(0, options.threads())
                .mapToObj(t -> new Ring(fired, t, size.applyAsInt(t))).toList();
        together(t -> fill.run(rings.get(t), size.applyAsInt(t)));
        fence();
        Map<String, Object> times = Process.measured(
                options, () -> together(t -> work.run(rings.get(t), options.share(options.count(), t))));
        together(t -> rings.get(t).drain());
        fence();
        return with(times, rings.stream().mapToLong(ring -> ring.lastId - ring.firstId).sum(), fired,
                rings.stream().mapToLong(ring -> ring.cancelled).sum(),
                rings.stream().mapToLong(ring -> ring.cancelledSum).sum());
    }

    /** Schedules timeouts of 1 to 1000 ms and waits until all have run. */
    private Map<String, Object> expire() throws Exception {
        Fired fired = new Fired(options.count());
        Map<String, Object> times = Process.measured(options, () -> {
            together(t -> {
                SplittableRandom random = random(t);
                int count = options.share(options.count(), t);
                for (int i = 1; i <= count; i++) {
                    long delayMs = options.inTurn() ? i % 1_000 : random.nextLong(1, 1_001);
                    timer.schedule(1_000 * delayMs, firstId(t) + i, fired);
                }
            });
            fired.all.await();
        });
        return with(times, options.count(), fired, 0, 0);
    }

    /** The handles are dropped: the timer keeps its timeouts alive. */
    private void schedulePending(LongSupplier delayMicros) throws InterruptedException {
        Fired never = new Fired(0);
        for (int id = 1; id <= options.pending(); id++) {
            timer.schedule(delayMicros.getAsLong(), id, never);
        }
        fence();
    }

    private Map<String, Object> memory() throws InterruptedException {
        fence();
        long before = Process.liveBytes();
        schedulePending(() -> TimeUnit.HOURS.toMicros(1));
        return Map.of("bytes_per_timeout", (double) (Process.liveBytes() - before) / options.pending());
    }

    private Map<String, Object> far() throws Exception {
        SplittableRandom random = random(0);
        schedulePending(() -> 1_000 * random.nextLong(600_000, 1_200_001));
        return Process.atRest(peer, options);
    }

    /** Holds the deadline of each timeout, and its lateness after it has run. */
    private static final class Deadlines implements Peer.Task {
        private final long[] nanos;
        private final CountDownLatch allRun = new CountDownLatch(1);
        private int left;

        Deadlines(int count) {
            nanos = new long[count];
            left = count;
        }

        @Override
        public void run(long id) {
            nanos[(int) id] = System.nanoTime() - nanos[(int) id];
            if (--left == 0) {
                allRun.countDown();
            }
        }
    }

    /** Measures the time from a deadline to the start of the task: 100 every 5 ms. */
    private Map<String, Object> late() throws InterruptedException {
        Deadlines deadlines = new Deadlines(options.count());
        SplittableRandom random = random(0);
        long start = System.nanoTime();
        for (int id = 0; id < options.count(); id++) {
            if (id % 100 == 0) {
                TimeUnit.NANOSECONDS.sleep(start + id / 100 * 5_000_000L - System.nanoTime());
            }
            long delayMicros = random.nextLong(1_000, 21_001);
            deadlines.nanos[id] = System.nanoTime() + 1_000 * delayMicros;
            timer.schedule(delayMicros, id, deadlines);
        }
        deadlines.allRun.await();
        long[] late = deadlines.nanos;
        Arrays.sort(late);
        double[] quantiles = new double[1_001];
        Arrays.setAll(quantiles, permille -> late[(int) (permille * (late.length - 1L) / 1_000)] / 1e3);
        // By more than the resolution of the clock.
        long early = Arrays.stream(late).takeWhile(nanos -> nanos < -1).count();
        return Map.of("late_us", quantiles, "early", early);
    }

    /**
     * Schedules 100 timeouts of 300 s each millisecond and cancels each after the next {@code pending} ones, except one
     * of a thousand. With {@code dueMs}, another timeout is due at that interval. Measures the growth of the live heap.
     */
    private Map<String, Object> rate() throws InterruptedException {
        Fired fired = new Fired(0);
        Object[] handles = new Object[options.pending()];
        fence();
        long before = Process.liveBytes();
        long cpu = Process.cpuNanos();
        long start = System.nanoTime();
        for (int id = 0; id < options.count(); id++) {
            if (id % 100 == 0) {
                int millis = id / 100;
                TimeUnit.NANOSECONDS.sleep(start + millis * 1_000_000L - System.nanoTime());
                if (options.dueMs() != 0 && millis % options.dueMs() == 0) {
                    timer.schedule(1_000L * options.dueMs(), 0, fired);
                }
            }
            int at = id % handles.length;
            if (handles[at] != null) {
                timer.cancel(handles[at]);
            }
            Object handle = timer.schedule(TimeUnit.SECONDS.toMicros(300), id, fired);
            handles[at] = id % 1_000 == 0 ? null : handle;
        }
        double millis = (System.nanoTime() - start) / 1e6;
        double spent = (Process.cpuNanos() - cpu) / 1e6;
        double kept = (Process.liveBytes() - before) / (double) (1 << 20);
        return Map.of("kept_mib", kept, "cpu_ms_per_s", 1_000 * spent / millis);
    }
}
