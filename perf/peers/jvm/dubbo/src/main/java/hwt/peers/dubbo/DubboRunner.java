package hwt.peers.dubbo;

import hwt.peers.Peer;
import hwt.peers.PeerTimer;
import hwt.peers.Runner;
import hwt.peers.Task;
import java.io.IOException;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.dubbo.common.timer.HashedWheelTimer;
import org.apache.dubbo.common.timer.Timeout;

/** Dubbo's HashedWheelTimer. */
public final class DubboRunner implements Peer {
    private static final String THREAD = "timer-worker";
    private static final int BUCKETS = 512;

    public static void main(String[] args) throws InterruptedException, IOException {
        // Named, so that it looks for no others; what stands behind it here prints nothing.
        System.setProperty("dubbo.application.logger", "slf4j");
        Runner.main(new DubboRunner(), args);
    }

    @Override
    public String name() {
        return "dubbo";
    }

    @Override
    public Set<String> threadNames() {
        return Set.of(THREAD);
    }

    @Override
    public PeerTimer start(int tickMs) {
        HashedWheelTimer timer =
                new HashedWheelTimer(run -> new Thread(run, THREAD), tickMs, TimeUnit.MILLISECONDS, BUCKETS);
        timer.start();
        return new DubboTimer(timer);
    }

    private record DubboTimer(HashedWheelTimer timer) implements PeerTimer {
        @Override
        public Object schedule(long delayMicros, long id, Task task) {
            return timer.newTimeout(timeout -> task.run(id), delayMicros, TimeUnit.MICROSECONDS);
        }

        @Override
        public boolean cancel(Object handle) {
            return ((Timeout) handle).cancel();
        }

        @Override
        public void close() {
            timer.stop();
        }
    }
}
