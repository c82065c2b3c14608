import com.xxl.job.core.biz.AdminBiz;
import com.xxl.job.core.biz.ExecutorBiz;
import com.xxl.job.core.biz.client.AdminBizClient;
import com.xxl.job.core.biz.client.ExecutorBizClient;
import com.xxl.job.core.biz.model.HandleCallbackParam;
import com.xxl.job.core.biz.model.IdleBeatParam;
import com.xxl.job.core.biz.model.KillParam;
import com.xxl.job.core.biz.model.LogParam;
import com.xxl.job.core.biz.model.LogResult;
import com.xxl.job.core.biz.model.RegistryParam;
import com.xxl.job.core.biz.model.ReturnT;
import com.xxl.job.core.biz.model.TriggerParam;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.List;

/**
 * Asks an executor or an admin with the library's own clients, a question for each line of the input.
 *
 * <p>Arguments: the executor's address, the admin's address, the token. Each answer is a line: its code, and what it says.
 */
public final class ReferenceClient {
    private static final int TIMEOUT_S = 3;
    private static final long LOG_DATE_MS = System.currentTimeMillis() / 1000 * 1000;

    private final ExecutorBiz executor;
    private final AdminBiz admin;

    private ReferenceClient(String executorAddress, String adminAddress, String token) {
        executor = new ExecutorBizClient(executorAddress, token, TIMEOUT_S);
        admin = new AdminBizClient(adminAddress, token, TIMEOUT_S);
    }

    public static void main(String[] arguments) throws Exception {
        ReferenceClient client = new ReferenceClient(arguments[0], arguments[1], arguments[2]);
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        String line;
        while ((line = input.readLine()) != null) {
            System.out.println(client.ask(line.split(" ")));
        }
    }

    private String ask(String[] words) {
        switch (words[0]) {
            case "beat":
                return told(executor.beat());
            case "idleBeat":
                return told(executor.idleBeat(new IdleBeatParam(Integer.parseInt(words[1]))));
            case "run":
                return told(executor.run(trigger(words)));
            case "kill":
                return told(executor.kill(new KillParam(Integer.parseInt(words[1]))));
            case "log":
                return toldLog(executor.log(new LogParam(LOG_DATE_MS, Long.parseLong(words[1]), 1)));
            case "registry":
                return told(admin.registry(new RegistryParam("EXECUTOR", words[1], words[2])));
            case "registryRemove":
                return told(admin.registryRemove(new RegistryParam("EXECUTOR", words[1], words[2])));
            case "callback":
                HandleCallbackParam result =
                        new HandleCallbackParam(Long.parseLong(words[1]), LOG_DATE_MS, Integer.parseInt(words[2]), words[3]);
                return told(admin.callback(List.of(result)));
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    /** A run: the job's id, the run's id, the handler, the parameter, the block strategy. */
    private static TriggerParam trigger(String[] words) {
        TriggerParam trigger = new TriggerParam();
        trigger.setJobId(Integer.parseInt(words[1]));
        trigger.setLogId(Long.parseLong(words[2]));
        trigger.setLogDateTime(LOG_DATE_MS);
        trigger.setExecutorHandler(words[3]);
        trigger.setExecutorParams(words[4]);
        trigger.setExecutorBlockStrategy(words[5]);
        trigger.setGlueType("BEAN");
        trigger.setBroadcastIndex(0);
        trigger.setBroadcastTotal(1);
        return trigger;
    }

    private static String told(ReturnT<String> answer) {
        return answer.getCode() + " " + answer.getMsg();
    }

    private static String toldLog(ReturnT<LogResult> answer) {
        LogResult log = answer.getContent();
        String lines = log.getLogContent().replace("\n", " | ");
        return answer.getCode() + " " + log.getFromLineNum() + ".." + log.getToLineNum() + " " + log.isEnd() + " " + lines;
    }
}
