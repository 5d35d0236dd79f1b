package hwt.peers;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;

/** CPU time of the process, the collector's and the compiler's threads included. */
final class Cpu {
    private static final OperatingSystemMXBean SYSTEM =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    private Cpu() {
    }

    static long nanos() {
        return SYSTEM.getProcessCpuTime();
    }
}
