from typing import ClassVar

from jobwheel.kernel.errors import JobwheelError


class SampleError(JobwheelError):
    code: ClassVar[str] = "sample"

    def __init__(self, port: int) -> None:
        super().__init__(f"port {port} is in use: choose another", field="port")


def test_an_error_carries_code_message_and_field() -> None:
    error = SampleError(8080)
    assert (error.code, error.message, error.field) == ("sample", "port 8080 is in use: choose another", "port")
    assert str(error) == error.message


def test_an_error_without_a_field_has_none() -> None:
    error = JobwheelError("something")
    assert (error.code, error.field) == ("error", None)
