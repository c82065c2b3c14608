import java.nio.file.Files;
import java.nio.file.Path;
import java.util.function.Consumer;

/** What the jobs do, whatever the library around them looks like. */
final class Work {
    /** A result of a run: 200 is a success, anything else is none. */
    record Result(int code, String message) {}

    private Work() {}

    static final String[] NAMES = {"echo", "refuse", "explode", "sleep", "shard", "talk", "await"};

    /**
     * Does what a job of this name does.
     *
     * @throws Exception if the job is to fail by one, or is interrupted
     */
    static Result run(String name, String parameter, int shardIndex, int shardTotal, Consumer<String> log)
            throws Exception {
        switch (name) {
            case "echo":
                log.accept("got " + parameter);
                return new Result(200, "got " + parameter);
            case "refuse":
                return new Result(500, "refused " + parameter);
            case "explode":
                throw new IllegalStateException("exploded " + parameter);
            case "sleep":
                log.accept("sleeps " + parameter + " ms");
                Thread.sleep(Long.parseLong(parameter));
                return new Result(200, "slept " + parameter + " ms");
            case "shard":
                return new Result(200, "shard " + shardIndex + " of " + shardTotal);
            case "talk":
                for (int line = 1; line <= Integer.parseInt(parameter); line++) {
                    log.accept("line " + line + ": 对账完成 · ✓ 𝄞");
                }
                return new Result(200, "talked · ✓");
            case "await":
                while (!Files.exists(Path.of(parameter))) {
                    Thread.sleep(20);
                }
                return new Result(200, "saw the file");
            default:
                throw new IllegalArgumentException("there is no job " + name);
        }
    }
}
