package hwt.peers;

/** A wrong option; its message is for the person who gave it. */
final class UsageException extends Exception {
    private static final long serialVersionUID = 1L;

    UsageException(String message) {
        super(message);
    }
}
