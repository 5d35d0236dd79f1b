package hwt.peers;

import java.util.Set;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.timer.SystemTimer;
import org.apache.kafka.server.util.timer.SystemTimerReaper;
import org.apache.kafka.server.util.timer.Timer;
import org.apache.kafka.server.util.timer.TimerTask;

/** A SystemTimer whose clock a SystemTimerReaper advances; expired tasks run in the timer's own executor thread. */
record KafkaTimer(Timer timer) implements Peer.Timer {
    private static final String REAPER = "timer-reaper";
    private static final String EXECUTOR = "timer";

    static Peer peer() {
        Set<String> threads = Set.of(REAPER, SystemTimer.SYSTEM_TIMER_THREAD_PREFIX + EXECUTOR);
        return new Peer(SystemTimer.class, threads, "delays in whole milliseconds", KafkaTimer::start);
    }

    private static KafkaTimer start(int tickMs) {
        SystemTimer timer = new SystemTimer(EXECUTOR, tickMs, Peer.BUCKETS, Time.SYSTEM.hiResClockMs());
        return new KafkaTimer(new SystemTimerReaper(REAPER, timer));
    }

    @Override
    public Object schedule(long delayMicros, long id, Peer.Task task) {
        // Rounded up, so that the timeout is not early.
        KafkaTask kafkaTask = new KafkaTask((delayMicros + 999) / 1_000, id, task);
        timer.add(kafkaTask);
        return kafkaTask;
    }

    @Override
    public boolean cancel(Object handle) {
        return ((KafkaTask) handle).tryCancel();
    }

    /** Adding a pending task again moves it. It keeps its delay, which suffices because touch has only one delay. */
    @Override
    public Object putOff(Object handle, long delayMicros, long id, Peer.Task task) {
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

    /** The timer does not tell whether a cancel was in time, so a flag decides between it and the task. */
    private static final class KafkaTask extends TimerTask {
        private static final AtomicIntegerFieldUpdater<KafkaTask> DONE =
                AtomicIntegerFieldUpdater.newUpdater(KafkaTask.class, "done");

        private final long id;
        private final Peer.Task task;
        private volatile int done;

        KafkaTask(long delayMs, long id, Peer.Task task) {
            super(delayMs);
            this.id = id;
            this.task = task;
        }

        boolean tryCancel() {
            cancel();
            return DONE.compareAndSet(this, 0, 1);
        }

        @Override
        public void run() {
            if (DONE.compareAndSet(this, 0, 1)) {
                task.run(id);
            }
        }
    }
}
