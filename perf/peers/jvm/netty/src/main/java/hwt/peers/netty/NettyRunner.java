package hwt.peers.netty;

import hwt.peers.Peer;
import hwt.peers.PeerTimer;
import hwt.peers.Runner;
import hwt.peers.Task;
import io.netty.util.HashedWheelTimer;
import io.netty.util.Timeout;
import java.io.IOException;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/** Netty's HashedWheelTimer. */
public final class NettyRunner implements Peer {
    private static final String THREAD = "timer-worker";
    private static final int BUCKETS = 512;

    public static void main(String[] args) throws InterruptedException, IOException {
        Runner.main(new NettyRunner(), args);
    }

    @Override
    public String name() {
        return "netty";
    }

    @Override
    public Set<String> threadNames() {
        return Set.of(THREAD);
    }

    @Override
    public PeerTimer start(int tickMs) {
        // Without leak detection, which is there for debugging.
        HashedWheelTimer timer =
                new HashedWheelTimer(run -> new Thread(run, THREAD), tickMs, TimeUnit.MILLISECONDS, BUCKETS, false);
        timer.start();
        return new NettyTimer(timer);
    }

    private record NettyTimer(HashedWheelTimer timer) implements PeerTimer {
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
