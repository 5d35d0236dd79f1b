package hwt.peers;

import java.util.Set;
import java.util.function.IntFunction;

/**
 * A timer library.
 *
 * @param library a class of the library
 * @param threads names of its threads, at most 15 characters, because the kernel truncates them
 * @param note a footnote of the figures, or ""
 * @param start starts a fresh timer with a tick in milliseconds
 */
record Peer(Class<?> library, Set<String> threads, String note, IntFunction<Timer> start) {
    static final int BUCKETS = 512;

    /** Receives expiries. A peer's task captures the id and a reference to this. */
    interface Task {
        void run(long id);
    }

    /** A started timer. */
    interface Timer extends AutoCloseable {
        /** Schedules a timeout that runs {@code task} with {@code id}. Returns the peer's own handle. */
        Object schedule(long delayMicros, long id, Task task);

        /** Returns whether the cancel has won, so that the task never runs. */
        boolean cancel(Object handle);

        /** Moves a pending timeout to {@code delayMicros} from now. Returns its new handle. */
        default Object putOff(Object handle, long delayMicros, long id, Task task) {
            cancel(handle);
            return schedule(delayMicros, id, task);
        }

        @Override
        void close();
    }

    /** Returns the version from the name of the jar: "netty-common-4.2.20.Final.jar". */
    String version() {
        String jar = library.getProtectionDomain().getCodeSource().getLocation().getPath();
        return jar.replaceFirst(".*?-(\\d[^/]*)\\.jar$", "$1");
    }
}
