package hwt.peers;

import java.util.Arrays;
import java.util.Locale;
import java.util.stream.Collectors;

/** The workloads and their defaults. Zero where a workload has no such option. */
enum Workload {
    CHURN(true, 1, 5_000_000, 1_000, 0),
    EXPIRE(true, 1, 6_000_000, 0, 0),
    MEMORY(false, 100, 0, 2_000_000, 0),
    IDLE(false, 1, 0, 0, 5),
    FAR(false, 1, 0, 1_000_000, 5),
    LATE(false, 1, 20_000, 0, 0),
    TOUCH(true, 1, 5_000_000, 100_000, 0);

    final boolean threaded;
    final int tickMs;
    final int count;
    final int pending;
    final int seconds;

    Workload(boolean threaded, int tickMs, int count, int pending, int seconds) {
        this.threaded = threaded;
        this.tickMs = tickMs;
        this.count = count;
        this.pending = pending;
        this.seconds = seconds;
    }

    String title() {
        return name().toLowerCase(Locale.ROOT);
    }

    static Workload of(String title) throws UsageException {
        for (Workload workload : values()) {
            if (workload.title().equals(title)) {
                return workload;
            }
        }
        throw new UsageException("unknown workload '" + title + "': one of " + titles());
    }

    static String titles() {
        return Arrays.stream(values()).map(Workload::title).collect(Collectors.joining(", "));
    }
}
