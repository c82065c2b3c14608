"""An executor in a FastAPI application: `uvicorn --app-dir examples fastapi_app:app`.

It starts and stops with the application, and listens on a port of its own. The admin is at JOBWHEEL_EXECUTOR_ADMIN.
"""

from fastapi import FastAPI

from jobwheel import Executor, JobContext

executor = Executor(app_name="fastapi-example")
app = FastAPI(lifespan=executor.lifespan)


@executor.job("greet")
async def greet(ctx: JobContext) -> str:
    ctx.log.info("greeting %s", ctx.parameter or "the world")
    return f"hello, {ctx.parameter or 'world'}"


@app.get("/")
def index() -> dict[str, list[str]]:
    return {"jobs": executor.handlers}
