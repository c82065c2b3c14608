import com.xxl.job.core.biz.model.ReturnT;
import com.xxl.job.core.executor.XxlJobExecutor;
import com.xxl.job.core.handler.IJobHandler;
import com.xxl.job.core.log.XxlJobLogger;
import com.xxl.job.core.util.ShardingUtil;

/**
 * An executor on the library of 2.2, until it is told to end.
 *
 * <p>Arguments: the admin's address, the token, the app name, the port, the folder of run logs.
 */
public final class ReferenceExecutor {
    public static void main(String[] arguments) throws Exception {
        for (String name : Work.NAMES) {
            XxlJobExecutor.registJobHandler(name, handler(name));
        }
        XxlJobExecutor executor = new XxlJobExecutor();
        executor.setAdminAddresses(arguments[0]);
        executor.setAccessToken(arguments[1]);
        executor.setAppname(arguments[2]);
        executor.setIp("127.0.0.1");
        executor.setPort(Integer.parseInt(arguments[3]));
        executor.setLogPath(arguments[4]);
        executor.setLogRetentionDays(30);
        executor.start();
        Runtime.getRuntime().addShutdownHook(new Thread(executor::destroy));
        System.out.println("ready");
        Thread.currentThread().join();
    }

    private static IJobHandler handler(String name) {
        return new IJobHandler() {
            @Override
            public ReturnT<String> execute(String parameter) throws Exception {
                ShardingUtil.ShardingVO shard = ShardingUtil.getShardingVo();
                Work.Result result =
                        Work.run(name, parameter, shard.getIndex(), shard.getTotal(), line -> XxlJobLogger.log(line));
                return new ReturnT<>(result.code(), result.message());
            }
        };
    }
}
