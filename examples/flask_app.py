"""An executor in a Flask application, on its port: `flask --app examples/flask_app.py run`.

JOBWHEEL_EXECUTOR_ADDRESS says where the admin reaches it, such as http://127.0.0.1:5000/jobwheel. The admin is at
JOBWHEEL_EXECUTOR_ADMIN.
"""

from flask import Flask
from werkzeug.middleware.dispatcher import DispatcherMiddleware

from jobwheel import Executor, JobContext

executor = Executor(app_name="flask-example", embedded_server=False)


@executor.job("greet")
def greet(ctx: JobContext) -> str:
    ctx.log.info("greeting %s", ctx.parameter or "the world")
    return f"hello, {ctx.parameter or 'world'}"


def create_app() -> Flask:
    app = Flask(__name__)
    app.wsgi_app = DispatcherMiddleware(app.wsgi_app, {"/jobwheel": executor.wsgi_app})  # type: ignore[method-assign]

    @app.get("/")
    def index() -> dict[str, list[str]]:
        return {"jobs": executor.handlers}

    executor.start_in_background(stop_at_exit=True)
    return app
