"""Deciding and firing: planner, claimer, wheel, lanes, routing, dispatcher, recovery."""
