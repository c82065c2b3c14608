"""The only place with SQL.

Functions take a synchronous `Connection` and run inside one transaction of the caller; `Database` runs them.
"""
