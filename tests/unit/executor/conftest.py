import os

import pytest


@pytest.fixture
def bytes_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How much each read of a file gave."""
    sizes: list[int] = []
    pread = os.pread

    def counting(descriptor: int, length: int, offset: int) -> bytes:
        data = pread(descriptor, length, offset)
        sizes.append(len(data))
        return data

    monkeypatch.setattr(os, "pread", counting)
    return sizes
