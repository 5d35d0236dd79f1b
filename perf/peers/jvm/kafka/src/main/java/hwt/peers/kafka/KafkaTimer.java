package hwt.peers.kafka;

import hwt.peers.PeerTimer;
import hwt.peers.Task;
import java.util.Set;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.timer.SystemTimer;
import org.apache.kafka.server.util.timer.SystemTimerReaper;
import org.apache.kafka.server.util.timer.Timer;

/** A SystemTimer whose clock a SystemTimerReaper advances; expired tasks run in the timer's own executor thread. */
final class KafkaTimer implements PeerTimer {
    private static final String REAPER = "timer-reaper";
    private static final String EXECUTOR = "timer";
    private static final int BUCKETS = 512;

    static final Set<String> THREADS = Set.of(REAPER, SystemTimer.SYSTEM_TIMER_THREAD_PREFIX + EXECUTOR);

    private final Timer timer;

    KafkaTimer(int tickMs) {
        timer = new SystemTimerReaper(
                REAPER, new SystemTimer(EXECUTOR, tickMs, BUCKETS, Time.SYSTEM.hiResClockMs()));
    }

    @Override
    public Object schedule(long delayMicros, long id, Task task) {
        // Rounded up: not earlier than asked for by this program's fault.
        KafkaTask kafkaTask = new KafkaTask((delayMicros + 999) / 1_000, id, task);
        timer.add(kafkaTask);
        return kafkaTask;
    }

    @Override
    public boolean cancel(Object handle) {
        return ((KafkaTask) handle).tryCancel();
    }

    /** Adding a pending task again moves it. Its delay stays the same, as it does in the only workload with touches. */
    @Override
    public Object touch(Object handle, long delayMicros, long id, Task task) {
        timer.add((KafkaTask) handle);
        return handle;
    }

    @Override
    public void close() {
        try {
            timer.close();
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }
}
