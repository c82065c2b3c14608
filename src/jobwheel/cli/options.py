"""Options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

DataDirOption = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        show_default=False,
        help="Where the admin keeps its data [default: JOBWHEEL_DATA_DIR, ./.jobwheel].",
    ),
]
DatabaseUrlOption = Annotated[
    str | None,
    typer.Option(
        "--database-url",
        show_default=False,
        help="The database [default: JOBWHEEL_DATABASE_URL, an SQLite file in the data directory].",
    ),
]
