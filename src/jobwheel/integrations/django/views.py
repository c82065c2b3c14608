"""The executor's HTTP API as a view."""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from jobwheel.integrations.django.handlers import get_executor


# The callers are admins, which are known by the token and have no cookies.
@csrf_exempt
def executor_api(request: HttpRequest, path: str) -> HttpResponse:
    """Answer as the executor's WSGI application does, under Django's ASGI handler as well."""
    response = HttpResponse()

    def start_response(status: str, headers: list[tuple[str, str]], _: Any = None, /) -> Callable[[bytes], object]:
        response.status_code = int(status[:3])
        for name, value in headers:
            response[name] = value
        write: Callable[[bytes], object] = response.write
        return write

    environ = {**request.META, "PATH_INFO": f"/{path}", "wsgi.input": request}
    response.content = b"".join(get_executor().wsgi_app(environ, start_response))
    return response
