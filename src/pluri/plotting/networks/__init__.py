"""Pictures of decoders: schedules, errors, attention and beams."""
