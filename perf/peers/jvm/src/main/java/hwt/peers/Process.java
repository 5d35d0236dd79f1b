package hwt.peers;

import com.sun.management.OperatingSystemMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;

/** Measures this process. */
final class Process {
    private static final OperatingSystemMXBean SYSTEM =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    private static final String SWITCHES = "voluntary_ctxt_switches:";

    private Process() {
    }

    interface Work {
        void run() throws Exception;
    }

    /**
     * Measures the time of operations. CPU time is that of the process, with the threads of the collector and the
     * compiler, and includes a rest, in which the timer catches up.
     */
    static Map<String, Object> measured(Options options, Work work) throws Exception {
        long cpu = SYSTEM.getProcessCpuTime();
        long start = System.nanoTime();
        work.run();
        long wall = System.nanoTime() - start;
        Thread.sleep(2L * options.tickMs() + 50);
        cpu = SYSTEM.getProcessCpuTime() - cpu;
        double operations = options.count();
        return new HashMap<>(Map.of("operations", options.count(), "cpu_ns_per_op", cpu / operations,
                "wall_ns_per_op", wall / operations, "wall_ms", wall / 1e6));
    }

    /** Returns the CPU time of all threads. */
    static long cpuNanos() {
        return SYSTEM.getProcessCpuTime();
    }

    /** Measures the process while no timeout is due. */
    static Map<String, Object> atRest(Peer peer, Options options) throws InterruptedException, IOException {
        Thread.sleep(2L * options.tickMs() + 500);
        long wakeups = wakeups(peer.threads());
        long cpu = SYSTEM.getProcessCpuTime();
        long start = System.nanoTime();
        Thread.sleep(1_000L * options.seconds());
        cpu = SYSTEM.getProcessCpuTime() - cpu;
        double seconds = (System.nanoTime() - start) / 1e9;
        wakeups = wakeups(peer.threads()) - wakeups;
        return Map.of("cpu_ms_per_s", cpu / 1e6 / seconds, "wakeups_per_s", wakeups / seconds);
    }

    /** Returns the voluntary context switches of the timer's threads, which it finds by their names. */
    private static long wakeups(Set<String> threads) throws IOException {
        long sum = 0;
        try (DirectoryStream<Path> tasks = Files.newDirectoryStream(Path.of("/proc/self/task"))) {
            for (Path task : tasks) {
                try {
                    if (threads.contains(Files.readString(task.resolve("comm")).strip())) {
                        String status = Files.readString(task.resolve("status"));
                        int at = status.indexOf("\n" + SWITCHES) + 1 + SWITCHES.length();
                        sum += Long.parseLong(status.substring(at).lines().findFirst().orElseThrow().strip());
                    }
                } catch (IOException e) {
                    if (Files.exists(task)) {
                        throw e;
                    }
                    // The thread has ended.
                }
            }
        }
        return sum;
    }

    /** Returns the bytes in use after full collections, repeated until they free no more. */
    static long liveBytes() {
        long before = collect();
        for (int i = 1; i < 10; i++) {
            long after = collect();
            if (Math.abs(before - after) < 64 << 10) {
                return after;
            }
            before = after;
        }
        return before;
    }

    private static long collect() {
        System.gc();
        return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
    }
}
