"""Pictures of alignments of sequences."""
