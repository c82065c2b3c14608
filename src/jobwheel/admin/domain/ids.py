"""Identifiers, each a type of its own so that one cannot stand in for another."""

from typing import NewType

GroupId = NewType("GroupId", int)
JobId = NewType("JobId", int)
RunId = NewType("RunId", int)
NodeId = NewType("NodeId", int)
UserId = NewType("UserId", int)
EventId = NewType("EventId", int)
ChannelId = NewType("ChannelId", int)
ScriptVersionId = NewType("ScriptVersionId", int)
ApiTokenId = NewType("ApiTokenId", int)
CleanUpId = NewType("CleanUpId", int)
