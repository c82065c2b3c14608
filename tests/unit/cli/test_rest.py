"""What a command says before it has asked an admin anything."""

from pathlib import Path

import pytest

from jobwheel.cli.errors import CaFileError
from jobwheel.cli.rest import Rest


@pytest.mark.parametrize("text", [None, "jobs: []\n"])
def test_a_file_of_authorities_that_is_none_is_named_with_its_variable(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "authorities.pem"
    if text is not None:
        path.write_text(text)
    with pytest.raises(CaFileError) as caught:
        Rest("https://127.0.0.1:8080", None, str(path))
    assert caught.value.message.startswith(f"JOBWHEEL_CA_FILE: {str(path)!r} holds no certificates in PEM: ")
