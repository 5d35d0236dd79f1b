package hwt.peers;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Set;

/** Voluntary context switches of the timer's own threads, which are told from the JVM's by their names. */
final class Wakeups {
    private static final Path TASKS = Path.of("/proc/self/task");
    private static final String FIELD = "voluntary_ctxt_switches:";

    private Wakeups() {
    }

    static long count(Set<String> threadNames) throws IOException {
        long sum = 0;
        try (DirectoryStream<Path> tasks = Files.newDirectoryStream(TASKS)) {
            for (Path task : tasks) {
                try {
                    if (threadNames.contains(Files.readString(task.resolve("comm")).strip())) {
                        sum += switches(task);
                    }
                } catch (NoSuchFileException e) {
                    // A thread of the JVM has ended meanwhile.
                }
            }
        }
        return sum;
    }

    private static long switches(Path task) throws IOException {
        for (String line : Files.readAllLines(task.resolve("status"))) {
            if (line.startsWith(FIELD)) {
                return Long.parseLong(line.substring(FIELD.length()).strip());
            }
        }
        throw new IOException("no " + FIELD + " in " + task);
    }
}
