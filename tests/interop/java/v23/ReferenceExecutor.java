import com.xxl.job.core.context.XxlJobHelper;
import com.xxl.job.core.executor.impl.XxlJobSimpleExecutor;
import com.xxl.job.core.handler.annotation.XxlJob;
import java.util.List;

/**
 * An executor on the library of 2.3 and later, until it is told to end.
 *
 * <p>Arguments: the admin's address, the token, the app name, the port, the folder of run logs.
 */
public final class ReferenceExecutor {
    public static void main(String[] arguments) throws Exception {
        XxlJobSimpleExecutor executor = new XxlJobSimpleExecutor();
        executor.setAdminAddresses(arguments[0]);
        executor.setAccessToken(arguments[1]);
        executor.setAppname(arguments[2]);
        executor.setIp("127.0.0.1");
        executor.setPort(Integer.parseInt(arguments[3]));
        executor.setLogPath(arguments[4]);
        executor.setLogRetentionDays(30);
        executor.setXxlJobBeanList(List.of(new ReferenceExecutor()));
        executor.start();
        Runtime.getRuntime().addShutdownHook(new Thread(executor::destroy));
        System.out.println("ready");
        Thread.currentThread().join();
    }

    @XxlJob("echo")
    public void echo() throws Exception {
        work("echo");
    }

    @XxlJob("refuse")
    public void refuse() throws Exception {
        work("refuse");
    }

    @XxlJob("explode")
    public void explode() throws Exception {
        work("explode");
    }

    @XxlJob("sleep")
    public void sleep() throws Exception {
        work("sleep");
    }

    @XxlJob("shard")
    public void shard() throws Exception {
        work("shard");
    }

    @XxlJob("talk")
    public void talk() throws Exception {
        work("talk");
    }

    @XxlJob("await")
    public void await() throws Exception {
        work("await");
    }

    private static void work(String name) throws Exception {
        Work.Result result = Work.run(
                name,
                XxlJobHelper.getJobParam(),
                XxlJobHelper.getShardIndex(),
                XxlJobHelper.getShardTotal(),
                line -> XxlJobHelper.log(line));
        XxlJobHelper.handleResult(result.code(), result.message());
    }
}
