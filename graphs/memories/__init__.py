"""The memories of a user or a team, for an app and for the person themselves: list, get, correct, delete, move.

Read `memories` first; `lines` has them as JSON lines, for export and import.
"""
