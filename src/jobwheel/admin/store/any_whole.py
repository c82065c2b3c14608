"""Numbers that may be larger than their column holds."""

from typing import Any

from sqlalchemy import BigInteger, BindParameter, ColumnElement, Integer, TypeDecorator, type_coerce


class AnyWhole(TypeDecorator[int]):
    """A column of 32 bits whose values are given with 64: what is larger than it can be is found nowhere.

    Plans stay as they are: PostgreSQL's indexes compare numbers of both lengths.
    """

    impl = Integer
    cache_ok = True

    def bind_expression(self, bindparam: BindParameter[int]) -> ColumnElement[Any]:
        return type_coerce(bindparam, BigInteger())
