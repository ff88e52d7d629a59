"""Topics put right by a person: names, mergers, splits, all of which can be taken back."""

from pluri.topics.editing.edit_files import apply_edits, read_edits

__all__ = ["apply_edits", "read_edits"]
