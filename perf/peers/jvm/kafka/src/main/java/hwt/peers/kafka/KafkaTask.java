package hwt.peers.kafka;

import hwt.peers.Task;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import org.apache.kafka.server.util.timer.TimerTask;

/** The timer does not tell whether a cancel was in time, so a flag decides between it and the task. */
final class KafkaTask extends TimerTask {
    private static final AtomicIntegerFieldUpdater<KafkaTask> DONE =
            AtomicIntegerFieldUpdater.newUpdater(KafkaTask.class, "done");

    private final long id;
    private final Task task;
    private volatile int done;

    KafkaTask(long delayMs, long id, Task task) {
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
