package hwt.peers;

/** What a timeout does when it expires. A peer's task captures the id and a reference to this. */
public interface Task {
    void run(long id);
}
