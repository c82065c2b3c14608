"""The only place with SQL.

Functions take a synchronous `Connection` and run inside one transaction of the caller; `Database` runs them. Callers
import the type of the connection that they pass through from here.
"""

from sqlalchemy import Connection

__all__ = ["Connection"]
