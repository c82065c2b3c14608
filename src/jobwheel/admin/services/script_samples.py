"""What a new script begins with."""

from collections.abc import Mapping
from typing import Final

from jobwheel.admin.domain.policies import GlueType

_SHELL = """\
#!/bin/bash
# What is printed goes to the run's log; the exit code 0 is success.
echo "parameter: $1"
echo "shard: $2 of $3"
echo "planned for $JOBWHEEL_PLANNED_TIME"
"""
_PYTHON = """\
# What is printed goes to the run's log; the exit code 0 is success.
import os
import sys

parameter, shard_index, shard_total = sys.argv[1:4]
print("parameter:", parameter)
print("shard:", shard_index, "of", shard_total)
print("planned for", os.environ.get("JOBWHEEL_PLANNED_TIME"))
"""
_PYTHON2 = """\
# What is printed goes to the run's log; the exit code 0 is success.
import sys

print("parameter: " + sys.argv[1])
print("shard: " + sys.argv[2] + " of " + sys.argv[3])
"""
_NODEJS = """\
// What is printed goes to the run's log; the exit code 0 is success.
const [parameter, shardIndex, shardTotal] = process.argv.slice(2);
console.log(`parameter: ${parameter}`);
console.log(`shard: ${shardIndex} of ${shardTotal}`);
console.log(`planned for ${process.env.JOBWHEEL_PLANNED_TIME}`);
"""
_POWERSHELL = """\
# What is printed goes to the run's log; the exit code 0 is success.
Write-Host "parameter: $($args[0])"
Write-Host "shard: $($args[1]) of $($args[2])"
Write-Host "planned for $env:JOBWHEEL_PLANNED_TIME"
"""
_PHP = """\
<?php
// What is printed goes to the run's log; the exit code 0 is success.
echo "parameter: $argv[1]\\n";
echo "shard: $argv[2] of $argv[3]\\n";
echo "planned for " . getenv("JOBWHEEL_PLANNED_TIME") . "\\n";
"""
_GROOVY = """\
// Runs on executors in Java alone. An exception fails the run.
import com.xxl.job.core.context.XxlJobHelper;
import com.xxl.job.core.handler.IJobHandler;

public class Sample extends IJobHandler {
    @Override
    public void execute() throws Exception {
        XxlJobHelper.log("parameter: {}", XxlJobHelper.getJobParam());
    }
}
"""

SAMPLES: Final[Mapping[GlueType, str]] = {
    GlueType.GLUE_SHELL: _SHELL,
    GlueType.GLUE_PYTHON: _PYTHON,
    GlueType.GLUE_PYTHON2: _PYTHON2,
    GlueType.GLUE_NODEJS: _NODEJS,
    GlueType.GLUE_POWERSHELL: _POWERSHELL,
    GlueType.GLUE_PHP: _PHP,
    GlueType.GLUE_GROOVY: _GROOVY,
}
