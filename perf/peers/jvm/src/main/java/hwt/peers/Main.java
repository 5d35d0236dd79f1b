package hwt.peers;

import com.google.gson.Gson;
import java.util.Arrays;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import picocli.CommandLine.ParameterException;

/** Runs a workload on a peer and prints its figures: PEER WORKLOAD [OPTION...], or PEER --describe. */
final class Main {
    private Main() {
    }

    public static void main(String[] args) {
        String name = args.length > 0 ? args[0] : "";
        String workload = args.length > 1 ? args[1] : "";
        try {
            Peer peer = peer(name);
            Map<String, Object> answer = new TreeMap<>();
            answer.put("runner", name);
            answer.put("version", peer.version());
            // "OpenJDK 64-Bit Server VM": the first word is the product.
            String product = System.getProperty("java.vm.name").split(" ")[0];
            answer.put("runtime", product + " " + System.getProperty("java.version"));
            if (!workload.equals("--describe")) {
                run(peer, workload, Arrays.stream(args).skip(2).toArray(String[]::new), answer);
            }
            System.out.println(new Gson().toJson(answer));
        } catch (ParameterException | IllegalArgumentException e) {
            System.err.println(name + ": " + e.getMessage());
            System.exit(2);
        } catch (Throwable e) {
            // Usually out of memory. The timer's threads would not end.
            e.printStackTrace();
            Runtime.getRuntime().halt(1);
        }
    }

    /** Loads only the classes of this peer, so that the JVM can inline the calls of its timer. */
    private static Peer peer(String name) {
        return switch (name) {
            case "netty" -> NettyTimer.peer();
            case "dubbo" -> DubboTimer.peer();
            case "kafka" -> KafkaTimer.peer();
            default -> throw new IllegalArgumentException("no such peer: there are netty, dubbo, kafka");
        };
    }

    private static void run(Peer peer, String workload, String[] args, Map<String, Object> answer) throws Exception {
        if (!Workloads.NAMES.contains(workload)) {
            throw new IllegalArgumentException(workload + ": no such workload; there are " + Workloads.NAMES);
        }
        Options options = Options.parse(args);
        if (workload.equals("touch") && options.pending() < options.threads()) {
            throw new IllegalArgumentException("--pending " + options.pending() + ": at least one for each of the "
                    + options.threads() + " threads");
        }
        for (int i = 0; i < options.warmup(); i++) {
            Workloads.measure(workload, peer, options);
        }
        answer.put("workload", workload);
        answer.putAll(options.fields());
        answer.putAll(Workloads.measure(workload, peer, options));
        String wakeups = Set.of("idle", "far").contains(workload) ? "wake-ups of the timer's own threads" : "";
        String note = Stream.of(peer.note(), wakeups).filter(text -> !text.isEmpty()).collect(Collectors.joining("; "));
        if (!note.isEmpty()) {
            answer.put("note", note);
        }
    }
}
