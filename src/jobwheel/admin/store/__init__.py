"""The only place with SQL.

Functions take a synchronous `Connection` and run inside one transaction of the caller; `Database` runs them. Callers name
the type of the connection they pass through by importing it from here.
"""

from sqlalchemy import Connection

__all__ = ["Connection"]
